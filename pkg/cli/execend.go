package cli

import (
	"context"
	"fmt"
	"time"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/kubeconfigfile"
	"cellcast.io/cellcast/pkg/cli/terminal"
)

// sayRunning says where the command will work, and until when it can.
func (e Env) sayRunning(o *execOptions, s cellcastv1alpha1.PlacementStatus) {
	until := "it can't be revoked, and ends at " + clock(s.Credential.ExpirationTimestamp.Time)
	if kubeconfigfile.Revocable(*s.Credential) {
		until = "it ends with the command, or by the cell's agent at " + clock(s.Credential.RevokesAt.Time)
	}
	e.say("%s goes to cell %s with a credential for %s/%s: %s.", o.question.workload,
		terminal.Printable(s.Cell.Name), terminal.Printable(s.Credential.Namespace), terminal.Printable(s.Credential.ServiceAccountName), until)
}

// handBack revokes the credential of a command that has ended, where that can
// be done. A failure changes nothing about how the command ended.
func (e Env) handBack(ctx context.Context, o *execOptions, answer *cellcastv1alpha1.Placement) {
	s := answer.Status
	if !kubeconfigfile.Revocable(*s.Credential) {
		return
	}
	// The context may have ended with the signal that ended the command.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- e.revokeAt(ctx, o, s) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done(): // also where the way to the hub isn't found in time
		err = fmt.Errorf("the hub didn't answer in %s", revokeTimeout)
	}
	if err == nil {
		return
	}
	r := explain(err, e.Now())
	e.say("Warning: the credential wasn't revoked; the cell's agent ends it at %s: %s", clock(s.Credential.RevokesAt.Time), terminal.Printable(r.says))
	if r.requestID != "" {
		e.say("Request id: %s", terminal.Printable(r.requestID))
	}
}

// revokeAt goes to the hub anew, for the caller's own token may have ended since,
// and fails unless the credential has ended for certain: whoever is the caller
// by then may not be the one whom it was issued to.
func (e Env) revokeAt(ctx context.Context, o *execOptions, s cellcastv1alpha1.PlacementStatus) error {
	hub, err := e.openHub(ctx, o.door, revokeTimeout)
	if err != nil {
		return err
	}
	return hub.end(ctx, s.Cell.Name, *s.Credential)
}

// endOf is when a credential ends without anyone asking for it.
func endOf(c cellcastv1alpha1.Credential) time.Time {
	if c.RevokesAt != nil && c.RevokesAt.Before(&c.ExpirationTimestamp) {
		return c.RevokesAt.Time
	}
	return c.ExpirationTimestamp.Time
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
