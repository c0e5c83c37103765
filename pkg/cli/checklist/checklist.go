// Package checklist shows the items of a probe as they end: on a terminal as a
// list that is drawn anew in place, elsewhere as a line per item. Nothing that it
// is given drives the terminal, and no line of the list is wider than the window,
// for one that wraps would be drawn in the wrong place the next time.
package checklist

import (
	"io"
	"slices"
	"strings"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// Phase is how far a run is.
type Phase int

// The phases.
const (
	// Asked: the run hasn't begun.
	Asked Phase = iota
	// Begun: it's under way.
	Begun
	// Over: it has ended.
	Over
)

// Size is the width and the height of a window, in characters.
type Size func() (width, height int)

// List shows one run of a probe. It's made by New, and isn't safe for concurrent
// use.
type List struct {
	out io.Writer
	// size is nil where it isn't a terminal.
	size Size
	// printed are the items whose line stands on a plain list.
	printed map[registryv1alpha1.TargetCheckName]bool
	// drawn are the lines that stand on a terminal.
	drawn []string
}

// New returns a list on out, which is a terminal where there is a size.
func New(out io.Writer, size Size) *List {
	l := &List{out: out, size: size, printed: map[registryv1alpha1.TargetCheckName]bool{}}
	if size != nil {
		// What has scrolled out of the window can't be drawn anew. Below the list
		// stands the cursor.
		if width, height := size(); width < 20 || height <= len(registryv1alpha1.TargetChecks())+1 {
			l.size = nil
		}
	}
	return l
}

// Show shows the items that have ended so far and, once the run is over, what
// mends what is wrong.
func (l *List) Show(checks []registryv1alpha1.TargetCheck, now Phase) error {
	if l.size == nil {
		if err := l.print(checks); err != nil || now != Over {
			return err
		}
		return l.write(files(checks))
	}
	if err := l.draw(checks, now); err != nil || now != Over {
		return err
	}
	for _, check := range ordered(checks) {
		if !telling(check) {
			continue
		}
		if err := l.write("\n" + strings.Join(whole(check), "")); err != nil {
			return err
		}
	}
	return l.write(files(checks))
}

// write writes a text, if there is any.
func (l *List) write(text string) error {
	if text == "" {
		return nil
	}
	_, err := io.WriteString(l.out, text)
	return err
}

// Forget begins a new run: no item of it has ended.
func (l *List) Forget() { clear(l.printed) }

// Aside is a writer for what comes in between: the list is drawn anew below it.
func (l *List) Aside(out io.Writer) io.Writer { return aside{out, l} }

type aside struct {
	out  io.Writer
	list *List
}

// Write writes, and leaves the list above as it is.
func (a aside) Write(p []byte) (int, error) {
	a.list.drawn = nil
	return a.out.Write(p)
}

// print writes the items that have ended since the last time.
func (l *List) print(checks []registryv1alpha1.TargetCheck) error {
	for _, check := range ordered(checks) {
		if l.printed[check.Name] {
			continue
		}
		l.printed[check.Name] = true
		if err := l.write(strings.Join(whole(check), "")); err != nil {
			return err
		}
	}
	return nil
}

// ordered are the items in the order in which they run; those that only a newer
// hub knows come last.
func ordered(checks []registryv1alpha1.TargetCheck) []registryv1alpha1.TargetCheck {
	order := registryv1alpha1.TargetChecks()
	at := func(name registryv1alpha1.TargetCheckName) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	checks = slices.Clone(checks)
	slices.SortStableFunc(checks, func(a, b registryv1alpha1.TargetCheck) int { return at(a.Name) - at(b.Name) })
	return checks
}

// Waiting are the items that haven't ended.
func Waiting(checks []registryv1alpha1.TargetCheck) []registryv1alpha1.TargetCheckName {
	return slices.DeleteFunc(registryv1alpha1.TargetChecks(), func(name registryv1alpha1.TargetCheckName) bool {
		return slices.ContainsFunc(checks, func(c registryv1alpha1.TargetCheck) bool { return c.Name == name })
	})
}

// telling reports whether an item has more to say than its line: it's wrong, or
// was skipped for something that can be mended.
func telling(c registryv1alpha1.TargetCheck) bool {
	return wrong(c.Result) || c.Result == registryv1alpha1.CheckSkipped && c.Remedy != ""
}

// wrong reports whether somebody should look at an item with this result.
func wrong(r registryv1alpha1.CheckResult) bool {
	switch r {
	case registryv1alpha1.CheckPassed, registryv1alpha1.CheckSkipped:
		return false
	case registryv1alpha1.CheckFailed, registryv1alpha1.CheckWarning:
		return true
	default:
		return true
	}
}
