package probe

import (
	"context"
	"errors"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell/failure"
)

// flaky answers each WhoAmI with the next error, then as the target does.
type flaky struct {
	*target
	errs []error
}

func (f *flaky) WhoAmI(ctx context.Context) (authenticationv1.UserInfo, error) {
	if len(f.errs) == 0 {
		return f.target.WhoAmI(ctx)
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	f.whoAmIs++
	return authenticationv1.UserInfo{}, err
}

func TestTargetIsTriedFiveTimes(t *testing.T) {
	down := fail(failure.Unreachable, errors.New("connection refused"))
	parked := &failure.Error{Kind: failure.Unreachable, RetryAfter: 12 * time.Second, Err: errors.New("not asked")}
	tests := map[string]struct {
		errs  []error
		tries int
		took  time.Duration
		state registryv1alpha1.TargetState
	}{
		"answers at once":                                  {nil, 1, 0, registryv1alpha1.TargetReady},
		"answers at the fifth try":                         {[]error{down, down, down, down}, 5, 7500 * time.Millisecond, registryv1alpha1.TargetReady},
		"never answers":                                    {[]error{down, down, down, down, down}, 5, 7500 * time.Millisecond, registryv1alpha1.TargetUnreachable},
		"can't serve at first":                             {[]error{serverError(503, "")}, 2, 500 * time.Millisecond, registryv1alpha1.TargetReady},
		"is unauthenticated, which waiting doesn't mend":   {[]error{unauthorized}, 1, 0, registryv1alpha1.TargetCredentialRejected},
		"was given up by the client before the run, once":  {[]error{parked, down, parked}, 4, 15 * time.Second, registryv1alpha1.TargetReady},
		"was given up for longer than a run should linger": {[]error{&failure.Error{Kind: failure.Unreachable, RetryAfter: time.Hour}}, 2, 20 * time.Second, registryv1alpha1.TargetReady},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, tr *trial) {
				api := &flaky{tr.target, tc.errs}
				tr.open = func(context.Context) (API, error) { return api, nil }
				tr.spec.CanaryImage = "" // the canary takes time of its own
				began := time.Now()
				p := &probe{spec: tr.spec, open: tr.open, progress: tr.record, api: api}
				p.reachable(tr.ctx)
				if took := time.Since(began); took != tc.took || tr.target.whoAmIs != tc.tries {
					t.Errorf("%d tries in %s, want %d in %s", tr.target.whoAmIs, took, tc.tries, tc.took)
				}
				api.errs, tr.spec.CanaryImage = tc.errs, "image"
				if r := tr.run(); r.State != tc.state {
					t.Errorf("state %s, want %s", r.State, tc.state)
				}
			})
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, tr *trial) {
		ctx, cancel := context.WithTimeout(tr.ctx, 600*time.Millisecond)
		defer cancel()
		tr.ctx = ctx
		tr.target.fails["WhoAmI"] = fail(failure.Unreachable, errors.New("connection refused"))
		began := time.Now()
		r := tr.run()
		if took := time.Since(began); took != 600*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		if len(r.Checks) != len(registryv1alpha1.TargetChecks()) || r.State == registryv1alpha1.TargetReady || r.State == registryv1alpha1.TargetUnreachable {
			t.Errorf("%d items, state %s", len(r.Checks), r.State)
		}
		if c := checkOf(t, r, registryv1alpha1.CheckReachable); c.Message != "The run was ended before this was known. Probe again." {
			t.Errorf("message %s", c.Message)
		}
	})
}
