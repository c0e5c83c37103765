package clustertarget

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/controller/change"
	"cellcast.io/cellcast/pkg/probe"
)

// Result is what a run has found.
type Result struct {
	probe.Result
	// CredentialVersion is the version of the credential that it was run with;
	// empty where none was read.
	CredentialVersion string
}

// unproven reports whether nothing is proven of the row's spec.
func unproven(row *registryv1alpha1.ClusterTarget) bool {
	return row.Status.Run == nil || row.Status.Run.Generation != row.Generation
}

// probing takes a target out of use until its spec is proven.
func probing(row *registryv1alpha1.ClusterTarget, now time.Time) {
	row.Status.ObservedGeneration = row.Generation
	row.Status.Checks = nil
	set := setter(row, now)
	set.state(registryv1alpha1.TargetProbing, "")
	set.unknown(registryv1alpha1.ConditionReachable)
	set.unknown(registryv1alpha1.ConditionCredentialAvailable)
}

// finish puts the end of a run into the status. Capabilities stay those of the
// last run that passed.
func finish(row *registryv1alpha1.ClusterTarget, end *ended, now time.Time) {
	if end == nil {
		return
	}
	s, result := &row.Status, end.result
	if s.Run == nil || s.Run.ID != end.run.ID {
		s.Run = end.run.DeepCopy()
	}
	s.Run.FinishedAt = new(metav1.NewTime(now))
	s.ObservedGeneration = end.run.Generation
	if result.Checks != nil {
		s.Checks = result.Checks
	}
	if result.Identity != nil {
		s.Identity = result.Identity
	}
	if result.CredentialVersion != "" {
		s.CredentialVersion = result.CredentialVersion
	}
	if result.State == registryv1alpha1.TargetReady {
		s.Capabilities = result.Capabilities
	}
	conclude(setter(row, now), result.Result)
}

// conclude sets state and conditions by the end of a run.
func conclude(set conditions, result probe.Result) {
	state := result.State
	switch state {
	case registryv1alpha1.TargetReady, registryv1alpha1.TargetFailed, registryv1alpha1.TargetUnreachable,
		registryv1alpha1.TargetCredentialRejected, registryv1alpha1.TargetCredentialUnavailable:
	case registryv1alpha1.TargetProbing:
		state = registryv1alpha1.TargetFailed
	default:
		state = registryv1alpha1.TargetFailed
	}
	set.state(state, result.Failing)
	credential := resultOf(result.Checks, registryv1alpha1.CheckCredential)
	switch {
	case state == registryv1alpha1.TargetCredentialUnavailable:
		set.credentialUnavailable(result.Failing)
	case credential == registryv1alpha1.CheckSkipped:
		set.unknown(registryv1alpha1.ConditionCredentialAvailable)
	default: // what was refused was read
		set.credentialRead()
	}
	switch reachable := resultOf(result.Checks, registryv1alpha1.CheckReachable); {
	case state == registryv1alpha1.TargetUnreachable:
		set.unreachable()
	case reachable == registryv1alpha1.CheckPassed:
		set.reachable()
	default:
		set.unknown(registryv1alpha1.ConditionReachable)
	}
}

// write patches the status, if it changed, and records what did. It fails when
// the row isn't the newest, for conditions are one list that is written whole.
func (r *Reconciler) write(ctx context.Context, t *target, before, row *registryv1alpha1.ClusterTarget, end *ended) error {
	changed := !equality.Semantic.DeepEqual(before.Status, row.Status)
	if changed {
		err := r.Client.Status().Patch(ctx, row, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsInvalid(err) && end != nil {
			t.unkeepable(end)
		}
		if err != nil {
			return fmt.Errorf("patch the status of ClusterTarget %s: %w", t.key, err)
		}
		t.wrote(row.ResourceVersion)
	}
	about := audit.Record{Kind: "ClusterTarget", Name: t.key.String(), Target: registryv1alpha1.TargetAddress(t.uid)}
	if end != nil {
		if err := r.Audit.Write(recordOf(about, end, row.Status, r.Clock.Now())); err != nil {
			return fmt.Errorf("record a run of ClusterTarget %s: %w", t.key, err)
		}
	}
	return change.Record(r.Audit, about, before.Status.Conditions, row.Status.Conditions, r.Clock.Now())
}

// unkeepable replaces a result that the API server doesn't take, so that the
// run still ends.
func (t *target) unkeepable(end *ended) {
	t.mu.Lock()
	defer t.mu.Unlock()
	end.result = Result{CredentialVersion: end.result.CredentialVersion, Result: probe.Result{
		State:   registryv1alpha1.TargetFailed,
		Failing: "What the probe found can't be kept in the row; the hub's log says why.",
	}}
}

// recordOf is the record of a run that ended.
func recordOf(about audit.Record, end *ended, status registryv1alpha1.ClusterTargetStatus, now time.Time) audit.Record {
	about.Time, about.Event, about.Run = now, audit.EventProbe, end.run.ID
	about.DurationMS = float64(end.took) / float64(time.Millisecond)
	about.Outcome = audit.OutcomeAllowed
	if status.State != registryv1alpha1.TargetReady {
		about.Outcome, about.Message = audit.OutcomeRefused, status.Failing
	}
	return about
}
