package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// errUnreadable says that a process's memory can't be read here.
var errUnreadable = errors.New("the memory of another process can't be read here")

// prefixLength is how much of a needle is looked up at each place.
const prefixLength = 8

// needles are texts that are looked for all at once. Each belongs to a token.
type needles struct {
	begins [1 << 16]bool // by the first two bytes
	texts  map[[prefixLength]byte][]needle
	// found are the tokens of which one was found, copies all finds.
	found  map[int]bool
	copies int
}

type needle struct {
	text  string
	token int
}

func newNeedles() *needles {
	return &needles{texts: map[[prefixLength]byte][]needle{}, found: map[int]bool{}}
}

// add adds a text of at least prefixLength bytes.
func (n *needles) add(text string, token int) {
	prefix := [prefixLength]byte([]byte(text))
	n.begins[int(prefix[0])<<8|int(prefix[1])] = true
	n.texts[prefix] = append(n.texts[prefix], needle{text, token})
}

// search looks at every place of the chunk where a whole needle fits.
func (n *needles) search(chunk []byte) {
	for i := 0; i+prefixLength <= len(chunk); i++ {
		if !n.begins[int(chunk[i])<<8|int(chunk[i+1])] {
			continue
		}
		for _, needle := range n.texts[[prefixLength]byte(chunk[i:])] {
			if bytes.HasPrefix(chunk[i:], []byte(needle.text)) {
				n.found[needle.token] = true
				n.copies++
			}
		}
	}
}

// eachChunk shows the readable memory of a process piece by piece, and returns
// how many bytes that were. Two pieces of one mapping overlap by one byte less
// than the longest needle, so that each needle is whole in one of them; a needle
// that is shorter may be seen twice.
func eachChunk(pid, longest int, show func([]byte)) (read int64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	defer memory.Close()
	lines := bufio.NewScanner(bytes.NewReader(maps))
	for lines.Scan() {
		var from, to uint64 // [vsyscall] is beyond an int64
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &rights); err != nil {
			return read, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		if !strings.HasPrefix(rights, "r") || strings.Contains(lines.Text(), "[v") { // the kernel's: [vvar], [vsyscall]
			continue
		}
		read += eachOf(io.NewSectionReader(memory, int64(from), int64(to-from)), longest, show)
	}
	return read, lines.Err()
}

// eachOf shows one mapping, as far as it can be read: it may be gone by now.
func eachOf(mapping *io.SectionReader, longest int, show func([]byte)) (read int64) {
	buffer := make([]byte, 4<<20)
	kept := 0
	for {
		n, err := io.ReadFull(mapping, buffer[kept:])
		read += int64(n)
		show(buffer[:kept+n])
		if err != nil {
			return read
		}
		kept = copy(buffer, buffer[len(buffer)-longest+1:])
	}
}
