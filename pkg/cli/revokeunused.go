package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/kubeconfigfile"
)

// discard ends a credential that was issued and that nobody shall use, where it
// can be ended, and says in words that follow an "and" what became of it. It
// takes revokeTimeout at most, also where the run has been interrupted.
func (h *hub) discard(ctx context.Context, cell string, c cellcastv1alpha1.Credential) string {
	if c.RevocationNonce == "" {
		return "the credential can't be revoked, and is good until " + clock(endOf(c))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
	defer cancel()
	if err := h.end(ctx, cell, c); err != nil {
		// The words alone: the error is another one's, with an exit code of its own.
		return fmt.Sprintf("the credential wasn't revoked (%s), and is good until %s", explain(err, h.env.Now()).says, clock(endOf(c)))
	}
	return "the credential was revoked"
}

// end revokes a credential, and fails unless it has ended for certain.
func (h *hub) end(ctx context.Context, cell string, c cellcastv1alpha1.Credential) error {
	which := kubeconfigfile.Revocation{Cell: cell, Namespace: c.Namespace, RevocationNonce: c.RevocationNonce}
	if c.RevokesAt != nil {
		which.RevokesAt = *c.RevokesAt
	}
	if err := which.Check(); err != nil {
		return fmt.Errorf("in the hub's answer, %w", err)
	}
	answer, err := h.revoke(ctx, cell, cellcastv1alpha1.CellRevocationSpec{Namespace: c.Namespace, RevocationNonce: c.RevocationNonce})
	switch {
	case err != nil:
		return err
	case certainlyEnded(answer.Status.Result, which.RevokesAt.Time, h.env.Now()):
		return nil
	case answer.Status.Result == cellcastv1alpha1.RevocationNotFound:
		return errors.New("the hub found no such credential of yours: it has ended already, or you aren't the caller any more whom it was issued to")
	default:
		return errNoResult
	}
}

var errNoResult = errors.New("the hub answered without a result; is it a hub?")

// certainlyEnded reports whether a credential has ended, after what the hub says
// of its revocation. One that isn't found may be alive and another caller's,
// until the cell's agent has ended it; a time of zero means that nobody knows
// when that is.
func certainlyEnded(result cellcastv1alpha1.RevocationResult, revokesAt, now time.Time) bool {
	switch result {
	case cellcastv1alpha1.RevocationRevoked:
		return true
	case cellcastv1alpha1.RevocationNotFound:
		return !revokesAt.IsZero() && !now.Before(revokesAt)
	default:
		return false
	}
}
