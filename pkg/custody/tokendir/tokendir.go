// Package tokendir keeps the token of each brought target in a file of its own,
// named by the target's UID, in a folder that one process has to itself.
//
// It promises that the folder is in memory (tmpfs), unless it's told to take
// another; that nobody but the process's user may look into it; that a file holds
// a whole token or isn't there; and that what an earlier process left is gone
// before the first token is written. It touches no file that isn't named as its
// own are.
package tokendir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"cellcast.io/cellcast/pkg/secret"
)

// Dir is the folder. What is done to one target's file is done one at a time.
type Dir struct {
	root *os.Root
	self *os.File // holds the lock
}

// Open returns the folder, which it makes with mode 0700 where it isn't there. It
// refuses one that isn't on tmpfs unless anywhere, one that others may look into,
// one that isn't ours and one that another process uses, and clears it.
func Open(path string, anywhere bool) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder for tokens: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("opening the folder for tokens: %w", err)
	}
	self, err := root.Open(".")
	if err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("opening the folder for tokens: %w", err)
	}
	d := &Dir{root, self}
	if err = d.check(anywhere); err == nil {
		err = d.clear()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the folder for tokens, %s: %w", path, err), d.release())
	}
	return d, nil
}

// check looks at the folder that is open: its path could stand for another by now.
func (d *Dir) check(anywhere bool) error {
	info, err := d.self.Stat()
	if err != nil {
		return err
	}
	if !isOurs(info) {
		return errors.New("it belongs to another user: name one that isn't there yet, and the hub makes it")
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("others may look into it, for its mode is %04o: name one that isn't there yet, below it for instance, and the hub makes it", mode)
	}
	inMemory, err := isInMemory(d.self)
	if err != nil {
		return fmt.Errorf("asking what it's on: %w", err)
	}
	if !inMemory && !anywhere {
		return errors.New("it isn't on tmpfs, so tokens would rest on a disk: mount a tmpfs there, " +
			"which in a pod is an emptyDir with medium: Memory at the folder above it")
	}
	return lock(d.self)
}

// Write puts the token into the target's file, whole or not at all.
func (d *Dir) Write(uid types.UID, token secret.Value) error {
	if !isName(string(uid)) {
		return errors.New("a target's UID must be a UUID")
	}
	if err := d.write(temporary(uid), string(uid), token); err != nil {
		return fmt.Errorf("writing the token of target %s: %w", uid, err)
	}
	return nil
}

func (d *Dir) write(temporary, name string, token secret.Value) error {
	_ = d.root.Remove(temporary)
	file, err := d.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(token.Reveal())
	if err = errors.Join(err, file.Close()); err == nil {
		err = d.root.Rename(temporary, name)
	}
	if err != nil {
		_ = d.root.Remove(temporary)
	}
	return err
}

// Read returns what is in the target's file.
func (d *Dir) Read(uid types.UID) (secret.Value, error) {
	if !isName(string(uid)) {
		return secret.Value{}, errors.New("a target's UID must be a UUID")
	}
	text, err := d.root.ReadFile(string(uid))
	if err != nil {
		return secret.Value{}, fmt.Errorf("reading the token of target %s: %w", uid, err)
	}
	return secret.New(string(text)), nil
}

// Remove removes the target's file, if there is one.
func (d *Dir) Remove(uid types.UID) error {
	if !isName(string(uid)) {
		return nil // no file was written for it
	}
	if err := d.root.Remove(string(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the token of target %s: %w", uid, err)
	}
	return nil
}

// Close removes all files and gives the folder up.
func (d *Dir) Close() error {
	return errors.Join(d.clear(), d.release())
}

func (d *Dir) release() error { return errors.Join(d.self.Close(), d.root.Close()) }

// clear removes the files that are named as ours are.
func (d *Dir) clear() error {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !isName(strings.TrimPrefix(entry.Name(), ".")) {
			continue
		}
		if err := d.root.Remove(entry.Name()); err != nil {
			return fmt.Errorf("removing a token: %w", err)
		}
	}
	return nil
}

// temporary is the name of a file that isn't whole yet.
func temporary(uid types.UID) string { return "." + string(uid) }

// isName reports whether a text is a UID as Kubernetes writes them, so that no
// other file can be meant: 8-4-4-4-12 lower-case hexadecimal digits.
func isName(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range []byte(text) {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !strings.ContainsRune("0123456789abcdef", rune(c)) {
				return false
			}
		}
	}
	return true
}
