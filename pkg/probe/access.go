package probe

import (
	"context"
	"errors"
	"time"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/probe/contract"
)

// credential reads the kubeconfig.
func (p *probe) credential(ctx context.Context) finding {
	api, err := p.open(ctx)
	if err == nil {
		p.api = api
		return passed("The kubeconfig was read and has the closed form.")
	}
	if refused, ok := errors.AsType[*kubeconfig.Error](err); ok {
		return failed("The kubeconfig isn't taken: %s", refused.Error()).mendedBy(p.handIn()).ending(registryv1alpha1.TargetFailed)
	}
	if ctx.Err() != nil {
		return interrupted(err)
	}
	return p.unavailable(err)
}

// longestPark bounds how long a run waits for a client that has stopped asking for
// a while.
const longestPark = 20 * time.Second

// reachable asks who the hub is there until an answer comes, whatever it says.
func (p *probe) reachable(ctx context.Context) finding {
	pauses := [...]time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second}
	for attempt := 0; ; attempt++ {
		p.user, p.whoAmI = p.api.WhoAmI(ctx)
		kind := failure.Of(p.whoAmI)
		if p.whoAmI == nil || kind != failure.Unreachable && kind != failure.Unavailable || attempt == len(pauses) {
			return p.answered()
		}
		pause := pauses[attempt]
		if attempt == 0 { // what failed before the run must not end it
			pause = max(pause, min(failure.RetryAfter(p.whoAmI), longestPark))
		}
		if err := sleep(ctx, pause); err != nil {
			return interrupted(err)
		}
	}
}

// answered tells whether something that speaks for the API answered.
func (p *probe) answered() finding {
	if p.whoAmI == nil {
		return passed("The hub connects to the target's API.")
	}
	switch failure.Of(p.whoAmI) {
	case failure.Unreachable:
		return p.unreachable(p.whoAmI)
	case failure.NoHubToken:
		return skipped("Not tried: the hub had no credential to try with.")
	case failure.Interrupted:
		return interrupted(p.whoAmI)
	case failure.Unauthenticated, failure.Forbidden, failure.NotFound:
		return passed("The hub connects to the target's API.")
	case failure.Unavailable, failure.Rejected, failure.Unexpected:
		return p.noAPI()
	default:
		return p.noAPI()
	}
}

// noAPI quotes nothing: what answers needn't be the registrant's.
func (p *probe) noAPI() finding {
	return failed("What answers at the server in the kubeconfig doesn't serve the Kubernetes API now: check that the command that the probe prints says ok, "+
		"and that the server is the API itself and not a page or a proxy before it. %s", p.operator()).
		mendedBy(readyz()).because(p.whoAmI).ending(registryv1alpha1.TargetFailed)
}

// authenticated judges the answer that reachable got.
func (p *probe) authenticated(context.Context) finding {
	if p.whoAmI != nil {
		return p.unknown()
	}
	if p.user.Username == "system:anonymous" {
		return p.rejected(errors.New("the API takes the hub for system:anonymous"))
	}
	if _, ok := contract.SubjectOf(p.user.Username); !ok {
		return passed("The target's API knows the credential, by a name that no Role can be bound to.")
	}
	return passed("The target's API knows the credential as %s.", quote(p.user.Username))
}

func (p *probe) unknown() finding {
	switch failure.Of(p.whoAmI) {
	case failure.Unauthenticated:
		return p.rejected(p.whoAmI)
	case failure.NoHubToken:
		return p.unavailable(p.whoAmI)
	case failure.Forbidden:
		return failed("The target's API forbids the credential to ask who it is (create selfsubjectreviews.authentication.k8s.io), which the " +
			"ClusterRole system:basic-user lets every user do. Ask the cluster's administrator to restore that.").
			mendedBy(onTarget("create", "clusterrolebinding", "cellcast-basic-user", "--clusterrole=system:basic-user", "--group=system:authenticated")).
			because(p.whoAmI).ending(registryv1alpha1.TargetFailed)
	case failure.NotFound:
		return failed("The target's API has no selfsubjectreviews.authentication.k8s.io/v1: it must be of Kubernetes 1.28 or newer.").
			mendedBy(onTarget("version")).because(p.whoAmI).ending(registryv1alpha1.TargetFailed)
	default:
		return p.noAPI()
	}
}

// sleep pauses, or returns why it was cut short.
func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
