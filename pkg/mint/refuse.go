package mint

import (
	"time"

	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/refusal"
)

// refuse says to the caller why the cell gave no token, and to its operators
// what to do. The cell's own words go to the log alone: they may name what the
// caller has no business with.
func refuse(cell string, ask Ask, err error) *refusal.Refusal {
	if r := refusal.As(err); r != nil {
		return r
	}
	account := ask.Namespace + "/" + ask.ServiceAccountName
	switch kind := failure.Of(err); kind {
	case failure.Unreachable:
		return unavailable(err, "cell %s can't be reached", cell)
	case failure.Unavailable:
		return unavailable(err, "cell %s can't issue a token now", cell)
	case failure.NoHubToken:
		return unavailable(err, "the hub can't get its own token for cell %s now", cell)
	case failure.Interrupted:
		return unavailable(err, "cell %s didn't answer before the request ended", cell)
	case failure.Unauthenticated:
		return failed(err, "cell %s doesn't trust the hub: check the TrustEstablished condition of its Cluster and the AuthenticationConfiguration of its API server", cell)
	case failure.Forbidden:
		return failed(err, "the hub may not create serviceaccounts/token for %s on cell %s: apply the Role that `cellcast register cell %s --mint %s` prints", account, cell, cell, account)
	case failure.NotFound:
		return failed(err, "there is no ServiceAccount %s on cell %s: create it, or correct spec.credential of the policy", account, cell)
	case failure.Rejected:
		return failed(err, "cell %s refused a token of %s for %s: check its admission policies on serviceaccounts/token and the limits of its API server", cell, ask.TTL.Truncate(time.Second), account)
	case failure.Unexpected:
		return failed(err, "cell %s answered with something that isn't understood", cell)
	default:
		return failed(err, "cell %s gave no token", cell)
	}
}

func unavailable(cause error, format string, args ...any) *refusal.Refusal {
	r := refusal.New(refusal.MintUnavailable, format, args...).Because(cause)
	r.RetryAfter = failure.RetryAfter(cause)
	return r
}

func failed(cause error, format string, args ...any) *refusal.Refusal {
	return refusal.New(refusal.MintFailed, format, args...).Because(cause)
}
