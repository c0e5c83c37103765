package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
)

// The search finds what is in a process's memory, once for each copy, and
// nothing else.
func TestTheSearchFindsEachCopyInAProcess(t *testing.T) {
	// The needle is put together in pieces, so that it's in memory only where it
	// was copied to.
	unit := []byte("0123456789abcdef")
	for i := range unit {
		unit[i] += 3
	}
	held := make([]byte, 9<<20) // more than a chunk, so that one copy lies across two
	for _, at := range []int{0, 4<<20 - 40, len(held) - 64} {
		for i := range 4 {
			copy(held[at+16*i:], unit)
		}
	}
	n := newNeedles()
	n.add(strings.Repeat(string(unit), 4), 1)
	n.add("this text is nowhere: "+string(unit), 2)
	eachOf(io.NewSectionReader(bytes.NewReader(held), 0, int64(len(held))), 64, n.search)
	if n.copies != 3 || !n.found[1] || n.found[2] {
		t.Errorf("%d copies of 3 were found, and of the tokens %v", n.copies, n.found)
	}

	n = newNeedles()
	n.add(strings.Repeat(string(unit), 4), 1)
	read, err := eachChunk(os.Getpid(), 64, n.search)
	if err != nil {
		t.Skip(err)
	}
	if read < int64(len(held)) || n.copies < 3 {
		t.Errorf("%d copies of at least 3 were found in %d bytes", n.copies, read)
	}
	held[0]++ // in use until here
}
