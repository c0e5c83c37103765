package hub

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheTrailNeedsAnOutputThatKeepsIt(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "trail"))
	if err != nil {
		t.Fatal(err)
	}
	if err := lasting(file); err != nil {
		t.Errorf("a file: %v", err)
	}
	file.Close()
	if err := lasting(file); err == nil {
		t.Error("a closed file is accepted")
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	if err := lasting(write); err != nil {
		t.Errorf("a pipe: %v", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if err := lasting(null); err == nil {
		t.Error("the null device, which is what a closed standard output becomes, is accepted")
	}
}
