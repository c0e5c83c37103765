package mint

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/revocation"
)

// mintBound makes the Secret, and mints a token that dies with it. Where no
// token comes of it the Secret is deleted again; where even that fails, the
// cell's agent does it.
func mintBound(ctx context.Context, now time.Time, cell Cell, ask Ask) (Credential, error) {
	bound, err := cell.CreateSecret(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ask.Namespace,
			Name:      ask.Binding.Name,
			Labels:    map[string]string{revocation.LabelSeconds: revocation.Label(ask.Binding.TTL)},
		},
		Type: corev1.SecretTypeOpaque,
	})
	if err != nil {
		return Credential{}, refuseBinding(cell.Name(), ask, err)
	}
	credential, err := mint(ctx, now, cell, ask, bound)
	if made := bound.CreationTimestamp.Time; err == nil && (made.After(now.Add(Skew)) || made.Before(now.Add(-Skew))) {
		err = refusal.New(refusal.MintFailed, "cell %s made the Secret of a revocable credential at %s by its own clock: set the cell's clock", cell.Name(), stamp(made))
	}
	if err != nil {
		Discard(ctx, cell, ask)
		return Credential{}, err
	}
	credential.RevokesAt = bound.CreationTimestamp.Add(ask.Binding.TTL)
	return credential, nil
}

// discardTimeout is how long Discard waits for the cell.
const discardTimeout = 5 * time.Second

// Discard ends a credential that nobody will get, where it's bound, whether or
// not the request that it was for has ended. It does what it can: otherwise the
// cell's agent ends it, and at the latest it expires.
func Discard(ctx context.Context, cell Cell, ask Ask) {
	if ask.Binding == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	_ = cell.DeleteSecret(ctx, ask.Namespace, ask.Binding.Name)
}

// Revoke deletes the Secret that a credential is bound to, and reports whether
// it was there. The cell refuses the token from then on, give or take the ten
// seconds for which an API server remembers a token that it has accepted.
func Revoke(ctx context.Context, cell Cell, namespace, name string) (found bool, err error) {
	switch err := cell.DeleteSecret(ctx, namespace, name); {
	case err == nil:
		return true, nil
	case failure.Of(err) == failure.NotFound:
		return false, nil
	default:
		return false, refuseRevocation(cell.Name(), err)
	}
}

// refuseBinding says why the cell has no Secret to bind a token to.
func refuseBinding(cell string, ask Ask, err error) *refusal.Refusal {
	switch failure.Of(err) {
	case failure.Forbidden:
		return failed(err, "the hub may not create a Secret in namespace %s of cell %s, which a revocable credential needs: apply what `cellcast register cell %s --revocable %s` prints, or see whether the namespace's quota is used up, or the policy's ttl above the cell's --max-ttl", ask.Namespace, cell, cell, ask.Namespace)
	case failure.NotFound:
		return failed(err, "there is no namespace %s on cell %s: create it, or correct spec.credential of the policy", ask.Namespace, cell)
	case failure.Rejected:
		return failed(err, "cell %s refused the Secret that a revocable credential is bound to: draw a new revocationNonce, as each is for one credential; otherwise check the cell's admission policies and quotas in namespace %s", cell, ask.Namespace)
	default:
		return refuse(cell, ask, err)
	}
}

// refuseRevocation says why a credential couldn't be ended.
func refuseRevocation(cell string, err error) *refusal.Refusal {
	switch kind := failure.Of(err); {
	case kind == failure.Forbidden:
		return failed(err, "the hub may not delete Secrets there on cell %s; the credential ends by itself", cell)
	case kind.MayClear():
		return unavailable(err, "cell %s can't be asked to end the credential now; its agent ends it when its time is over", cell)
	default:
		return failed(err, "cell %s didn't end the credential; its agent ends it when its time is over", cell)
	}
}
