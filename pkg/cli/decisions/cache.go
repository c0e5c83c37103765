// Package decisions keeps the hub's last decision for each workload in files, for
// the day on which the hub can't decide.
//
// It keeps decisions and never credentials: there is no field for one. A file is
// written whole or not at all, in a folder that nobody but its owner can enter.
// What others could have written isn't believed, and neither is a file that is
// damaged, too large, for another question, or too old.
package decisions

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// MaxSize is the most bytes of a file; almost all of them would be the cell's CA.
const MaxSize = 256 << 10

// ErrNone says that the cache holds no decision for the question.
var ErrNone = errors.New("there is no decision of an earlier run")

// Key is the question that a decision answered.
type Key struct {
	// Hub is the URL of the hub, or of its API server.
	Hub      string `json:"hub"`
	Workload string `json:"workload"`
	Dark     bool   `json:"dark"`
}

// Decision is what the hub decided.
type Decision struct {
	Cell      cellcastv1alpha1.CellReference `json:"cell"`
	Policy    string                         `json:"policy"`
	DecidedAt time.Time                      `json:"decidedAt"`
}

// Cache is a folder of decisions.
type Cache struct{ dir string }

// In returns the cache in a folder, which needn't exist yet.
func In(dir string) Cache { return Cache{dir} }

// Dir is the folder.
func (c Cache) Dir() string { return c.dir }

// Save keeps the decision in place of an earlier one.
func (c Cache) Save(key Key, d Decision) error {
	content, err := encode(key, d)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	root, err := open(c.dir)
	if err != nil {
		return err
	}
	return errors.Join(replace(root, name(key), content), root.Close())
}

// Last returns the last decision for the question, where it's younger than ttl.
// The error is ErrNone where there is none, and says what is wrong with one
// that can't be used.
func (c Cache) Last(key Key, now time.Time, ttl time.Duration) (Decision, error) {
	root, err := open(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Decision{}, ErrNone
	}
	if err != nil {
		return Decision{}, err
	}
	defer func() { _ = root.Close() }() // it was only read
	content, err := read(root, name(key))
	if errors.Is(err, fs.ErrNotExist) {
		return Decision{}, ErrNone
	}
	if err != nil {
		return Decision{}, fmt.Errorf("%s/%s isn't believed: %w", c.dir, name(key), err)
	}
	d, err := decode(key, content)
	if err != nil {
		return Decision{}, fmt.Errorf("%s/%s isn't believed: %w", c.dir, name(key), err)
	}
	switch age := now.Sub(d.DecidedAt); {
	case age < -clockSkew:
		return Decision{}, fmt.Errorf("%s/%s isn't believed: it's of a time to come", c.dir, name(key))
	case age >= ttl:
		return Decision{}, fmt.Errorf("the last decision is of %s and counts for %s (--cache-ttl)", d.DecidedAt.UTC().Format(time.RFC3339), ttl)
	}
	return d, nil
}

// clockSkew is how far two machines that share a folder may be apart.
const clockSkew = time.Minute

// name is the file of a question. A workload's name, which may hold slashes,
// isn't in it.
func name(key Key) string {
	text, _ := json.Marshal(key) // strings and a bool: it can't fail
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:]) + ".json"
}

// open opens the folder, and looks at what it opened: what the path leads to a
// moment later doesn't matter.
func open(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		err = private(info)
	}
	if err != nil {
		_ = root.Close() // the error is what matters
		return nil, fmt.Errorf("the folder %s isn't used: %w", dir, err)
	}
	return root, nil
}

func read(root *os.Root, name string) ([]byte, error) {
	// Before it's opened, for opening a pipe would wait for its other end.
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it's no regular file")
	}
	if err := private(info); err != nil {
		return nil, err
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	content, err := io.ReadAll(io.LimitReader(file, MaxSize+1))
	if err != nil {
		return nil, err
	}
	if len(content) > MaxSize {
		return nil, fmt.Errorf("it's larger than %d bytes", MaxSize)
	}
	return content, nil
}

// replace puts the content in place in one step.
func replace(root *os.Root, name string, content []byte) error {
	temp := "." + rand.Text()
	file, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return nil
}
