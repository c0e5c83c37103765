package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/checklist"
	"cellcast.io/cellcast/pkg/cli/terminal"
)

// probePoll is how often the row is read while a probe is under way.
const probePoll = 500 * time.Millisecond

// stillRunningError says that a probe goes on.
type stillRunningError struct {
	target  string
	timeout time.Duration
	// begun says that the hub has begun it, and waiting what hasn't ended.
	begun   bool
	waiting []registryv1alpha1.TargetCheckName
}

func (e *stillRunningError) Error() string {
	if !e.begun {
		return fmt.Sprintf("the hub hasn't begun the probe of %s in %s", e.target, e.timeout)
	}
	if len(e.waiting) == 0 {
		return fmt.Sprintf("the probe of %s goes on after %s", e.target, e.timeout)
	}
	text := fmt.Sprintf("the probe of %s goes on after %s: %s is running", e.target, e.timeout, e.waiting[0])
	for i, name := range e.waiting[1:] {
		if text += ", " + string(name); i == len(e.waiting)-2 {
			text += " to come"
		}
	}
	return text
}

func (e *stillRunningError) report() report {
	next := "Look again with the same command: it joins the probe that is under way."
	if !e.begun {
		next = "Ask again; if it lasts, the platform team should see whether a replica of the hub holds the lease."
	}
	return report{exit: exitUnavailable, says: e.Error(), next: next}
}

// watchProbe asks for a probe and follows it to its end. It returns the row as it
// was last read; nil where it never was.
func (e Env) watchProbe(ctx context.Context, hub *hub, key types.NamespacedName, timeout time.Duration, f format) (*registryv1alpha1.ClusterTarget, error) {
	deadline := e.Now().Add(timeout)
	asked, err := hub.probe(ctx, key)
	if err != nil {
		return nil, err
	}
	if asked.Joined && !f.whole() {
		e.say("A probe is under way already: this is that one.")
	}
	list := checklist.New(e.Out, e.Window)
	e.Err = list.Aside(e.Err)
	hub.env.Err = e.Err
	w := &probeWatch{env: e, hub: hub, key: key, run: asked.Run, whole: f.whole(), list: list}
	for {
		if over, err := w.look(ctx); over || err != nil {
			return w.row, err
		}
		left := deadline.Sub(e.Now())
		if left <= probePoll {
			return w.row, &stillRunningError{target: key.String(), timeout: timeout, begun: w.begun, waiting: checklist.Waiting(w.checks())}
		}
		if err := e.sleep(ctx, probePoll); err != nil {
			return w.row, &requestError{err: err, at: hub.at, timeout: timeout}
		}
		hub.timeout = left
	}
}

// probeWatch follows one run of a probe.
type probeWatch struct {
	env   Env
	hub   *hub
	key   types.NamespacedName
	list  *checklist.List
	whole bool
	// run is the id of the run, and begun says that the row had it.
	run   string
	begun bool
	row   *registryv1alpha1.ClusterTarget
}

// checks are the items of the run that have ended.
func (w *probeWatch) checks() []registryv1alpha1.TargetCheck {
	if !w.begun {
		return nil // they are an earlier run's
	}
	return w.row.Status.Checks
}

// look reads the row, shows what is new, and reports whether the run has ended;
// the error then says that the target can't be used.
func (w *probeWatch) look(ctx context.Context) (over bool, err error) {
	row, err := w.hub.target(ctx, w.key)
	if err != nil {
		return false, err
	}
	w.row = row
	run := row.Status.Run
	switch {
	case run != nil && run.ID == w.run:
		w.begun = true
	case run != nil && w.begun:
		// The spec or the credential changed, or the hub ended in the middle.
		w.run = run.ID
		w.list.Forget()
		w.env.say("Another run has taken its place: %s.", terminal.Printable(string(run.Reason)))
	}
	now := checklist.Asked
	if w.begun {
		now = checklist.Begun
		// The state follows from the items; the last word is when both are there.
		if over = run.FinishedAt != nil && row.Status.State != registryv1alpha1.TargetProbing; over {
			now = checklist.Over
		}
	}
	if !w.whole {
		if err := w.list.Show(w.checks(), now); err != nil {
			return false, err
		}
	}
	if !over {
		return false, nil
	}
	return true, w.end()
}

// end says how the run ended.
func (w *probeWatch) end() error {
	s := w.row.Status
	if s.State != registryv1alpha1.TargetReady {
		return &stateError{key: w.key, row: w.row, at: w.hub.at}
	}
	if w.whole {
		return nil
	}
	var goodFor []string
	for _, capability := range s.Capabilities {
		goodFor = append(goodFor, string(capability))
	}
	text := "Ready"
	if len(goodFor) > 0 {
		text += ", for " + strings.Join(goodFor, ", ")
	}
	_, err := fmt.Fprintln(w.env.Out, terminal.Printable(text)+".")
	return err
}
