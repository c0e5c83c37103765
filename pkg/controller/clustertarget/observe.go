package clustertarget

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// observe puts what a look found into the status, and returns why a run is due
// because of it. A look never makes a target Ready.
func observe(row *registryv1alpha1.ClusterTarget, l *look, now time.Time) registryv1alpha1.ProbeReason {
	if l == nil {
		return ""
	}
	if run := row.Status.Run; l.cleared != "" && run != nil && run.Canary != nil && run.Canary.PodName == l.cleared {
		run.Canary.DeletedAt = new(metav1.NewTime(now))
	}
	set := setter(row, now)
	switch l.found {
	case answered:
		set.reachable()
		set.credentialRead()
		return newsOf(row, l.sight)
	case refused:
		set.credentialRead()
		return newsOfRefused(row, l.sight)
	case unavailable:
		set.credentialUnavailable(l.advice)
		set.state(registryv1alpha1.TargetCredentialUnavailable, "Credential: "+l.advice)
	case rejected:
		set.reachable()
		set.credentialRead()
		set.state(registryv1alpha1.TargetCredentialRejected, "Authenticated: "+saysRejected)
	case unconnected:
		if l.failures >= failuresToUnreachable {
			set.unreachable()
			set.credentialRead()
			set.state(registryv1alpha1.TargetUnreachable, "Reachable: "+saysUnreachable)
		}
	case unclear:
	}
	return ""
}

// newsOf is why a target that answers is probed; empty for one that is as it was
// probed last.
func newsOf(row *registryv1alpha1.ClusterTarget, sight Sight) registryv1alpha1.ProbeReason {
	if row.Status.State != registryv1alpha1.TargetUnreachable && sight.CredentialVersion != row.Status.CredentialVersion {
		return registryv1alpha1.ProbeCredentialChanged
	}
	switch row.Status.State {
	case registryv1alpha1.TargetUnreachable, registryv1alpha1.TargetCredentialRejected, registryv1alpha1.TargetCredentialUnavailable:
		return registryv1alpha1.ProbeRecovered
	case registryv1alpha1.TargetFailed:
		if recovering(&row.Status) {
			return registryv1alpha1.ProbeRecovered
		}
		return ""
	case registryv1alpha1.TargetProbing, registryv1alpha1.TargetReady:
		return ""
	default:
		return registryv1alpha1.ProbeRecovered
	}
}

// recovering reports whether the target came back and hasn't passed a probe since.
// It is probed until it does: its cluster may answer before its nodes take pods. A
// run that somebody caused isn't repeated, for they see how it ended.
func recovering(status *registryv1alpha1.ClusterTargetStatus) bool {
	return status.State == registryv1alpha1.TargetFailed && status.Run != nil && status.Run.Reason == registryv1alpha1.ProbeRecovered
}

// newsOfRefused has a kubeconfig that isn't of the closed form probed once, so
// that the item says what is wrong with it.
func newsOfRefused(row *registryv1alpha1.ClusterTarget, sight Sight) registryv1alpha1.ProbeReason {
	said := row.Status.State == registryv1alpha1.TargetFailed && resultOf(row.Status.Checks, registryv1alpha1.CheckCredential) == registryv1alpha1.CheckFailed
	changed := sight.CredentialVersion != "" && sight.CredentialVersion != row.Status.CredentialVersion
	if said && !changed {
		return ""
	}
	return registryv1alpha1.ProbeCredentialChanged
}

// resultOf is the result of an item; Skipped where it isn't there.
func resultOf(checks []registryv1alpha1.TargetCheck, name registryv1alpha1.TargetCheckName) registryv1alpha1.CheckResult {
	i := slices.IndexFunc(checks, func(c registryv1alpha1.TargetCheck) bool { return c.Name == name })
	if i < 0 {
		return registryv1alpha1.CheckSkipped
	}
	return checks[i].Result
}
