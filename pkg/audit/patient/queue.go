package patient

import (
	"bytes"

	"golang.org/x/sync/semaphore"
)

// queue is lines that wait. Whoever has room for a line can put it in without
// waiting, since no line weighs less than minLine.
type queue struct {
	most  int64
	room  *semaphore.Weighted
	lines chan line
}

type line struct {
	text   []byte
	weight int64
	ended  func(error) // doesn't block
}

func newQueue(most int64) queue {
	return queue{most: most, room: semaphore.NewWeighted(most), lines: make(chan line, most/minLine)}
}

// weight is the room that a text takes.
func (q queue) weight(text []byte) int64 { return min(max(int64(len(text)), minLine), q.most) }

// line copies the text, for which there is room: it's its writer's own again once
// the call is over, written or not.
func (q queue) line(text []byte, ended func(error)) line {
	return line{bytes.Clone(text), q.weight(text), ended}
}
