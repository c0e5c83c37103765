// Package kubeconfigfile writes the one place where the client keeps a
// credential: a kubeconfig that holds one cell and one short-lived token.
//
// Its promise: after a run that named a file, the file holds that run's
// credential whole, readable by its owner alone, or it's gone. It never holds
// half of one, and never an earlier run's credential for a cell that this run
// didn't choose. A file that cellcast didn't write is never touched.
package kubeconfigfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// mark is how a file of ours begins.
const mark = "# Written by cellcast"

// File is a place that is reserved for a kubeconfig.
type File struct {
	path string
	temp *os.File
}

// Reserve makes sure that a kubeconfig can be written to path, before anything
// is asked of the hub: a credential for which there is no room would live on
// unused. Commit must follow, or Abandon where it doesn't come to that or fails.
func Reserve(path string) (*File, error) {
	if _, err := earlier(path); err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	// CreateTemp makes a new file that only its owner may read or write.
	temp, err := os.CreateTemp(dir, ".cellcast-*")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the directory of %s doesn't exist: mkdir -p -m 0700 %s", path, dir)
	case err != nil:
		return nil, fmt.Errorf("make room for the kubeconfig: %w", err)
	}
	return &File{path: path, temp: temp}, nil
}

// Commit puts the content in place, in one step.
func (f *File) Commit(content []byte) error {
	if err := f.replace(content); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}

func (f *File) replace(content []byte) error {
	if _, err := fmt.Fprintf(f.temp, "%s; it's replaced or removed by the next run.\n%s", mark, content); err != nil {
		return err
	}
	if err := f.temp.Sync(); err != nil {
		return err
	}
	if err := f.temp.Close(); err != nil {
		return err
	}
	// The answer took its time: look again at what is there now.
	if _, err := earlier(f.path); err != nil {
		return err
	}
	if err := os.Rename(f.temp.Name(), f.path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(f.path))
}

// Abandon gives the place up. A kubeconfig of an earlier run is removed with
// it; removed says that there was one.
func (f *File) Abandon() (removed bool, err error) {
	if err := f.discard(); err != nil {
		return false, err
	}
	return Remove(f.path)
}

// Remove removes a kubeconfig that cellcast wrote, where there is one; removed
// says that there was. It fails on a file that isn't cellcast's.
func Remove(path string) (removed bool, err error) {
	credential, err := earlier(path)
	if err != nil || !credential {
		return false, err
	}
	if err := os.Remove(path); err != nil {
		return false, fmt.Errorf("remove the kubeconfig: %w", err)
	}
	return true, nil
}

// discard removes the temporary file, where it's still there.
func (f *File) discard() error {
	_ = f.temp.Close() // closed already, or of no more use
	if err := os.Remove(f.temp.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// earlier reports whether the path holds a kubeconfig that cellcast wrote. It
// fails where it holds anything else that may not be replaced; nothing, and an
// empty file such as mktemp makes, may.
func earlier(path string) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look at the kubeconfig: %w", err)
	case info.Mode()&fs.ModeSymlink != 0:
		return false, fmt.Errorf("%s is a symbolic link: a credential is never written through one; name the file itself", path)
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is no regular file; to print the credential, use -o json", path)
	case info.Size() == 0:
		return false, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("look at the kubeconfig: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	head := make([]byte, len(mark))
	if _, err := io.ReadFull(file, head); err != nil || !bytes.Equal(head, []byte(mark)) {
		return false, fmt.Errorf("%s exists and wasn't written by cellcast: it's left as it is; name another file", path)
	}
	return true, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
