package audit

// Sink takes records, and may be given them by many at once.
type Sink interface {
	// Write returns nil when the record is where it belongs; a stranger's may
	// still be on its way there. With an error it may not be, and what it speaks
	// of must not be handed out.
	Write(Record) error
}

// Tee is a Sink that hands each record to several, in order. The first is the
// trail, and what it says goes. The others are views of the trail, which nobody
// may rely on: they get each record too, also one that the trail didn't take.
type Tee []Sink

// Write returns the error of the trail.
func (t Tee) Write(record Record) error {
	var lost error
	for i, sink := range t {
		if err := sink.Write(record); i == 0 {
			lost = err
		}
	}
	return lost
}
