package clustertarget

import (
	"k8s.io/apimachinery/pkg/util/uuid"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// order is a run that is due. The zero order is none.
type order struct {
	id     string
	reason registryv1alpha1.ProbeReason
}

// due returns the run that the row asks for, or else the one that a look gives
// reason to. Of a run that is under way it's none, unless the spec has changed.
//
// A run that was cut keeps its id, and one that begins while a request waits has
// the request's: whoever waits for an id sees it finish.
func (t *target) due(row *registryv1alpha1.ClusterTarget, news registryv1alpha1.ProbeReason) order {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run != nil && t.run.begun() {
		if t.run.row.Generation != row.Generation {
			t.run.cancel()
		}
		return order{}
	}
	if t.run != nil && news == "" {
		news = t.run.order.reason // it waits for its turn, and the reason stands
	}
	request, run := t.pending(row.Status), row.Status.Run
	next := order{reason: news}
	switch {
	case run == nil:
		next.reason = registryv1alpha1.ProbeCreated
	case run.Generation != row.Generation:
		next.reason = registryv1alpha1.ProbeSpecChanged
	case run.FinishedAt == nil && run.Reason == registryv1alpha1.ProbeRecovered:
		next.reason = run.Reason
	case run.FinishedAt == nil:
		next.reason = registryv1alpha1.ProbeResumed
	case request != "" && (recovering(&row.Status) || row.Status.State == registryv1alpha1.TargetUnreachable):
		next.reason = registryv1alpha1.ProbeRecovered // who asks doesn't end that it is repeated
	case request != "":
		next.reason = registryv1alpha1.ProbeRequested
	case news == "":
		return order{}
	}
	switch {
	case run != nil && run.FinishedAt == nil:
		next.id = run.ID
	case request != "":
		next.id = request
	case t.run != nil:
		next.id = t.run.order.id
	default:
		next.id = string(uuid.NewUUID())
	}
	return next
}

// pending returns the id of a request that no run has served; empty where
// there's none. A request that came while this process watched is told by its
// id alone. Of one that it finds the times decide, equal ones for the request:
// they are whole seconds, and a run too many harms nobody.
func (t *target) pending(status registryv1alpha1.ClusterTargetStatus) string {
	request, run := status.Request, status.Run
	if request == nil {
		t.known = true
		return ""
	}
	found := !t.known
	t.known = true
	if run != nil && (run.ID == request.ID || found && request.RequestedAt.Before(&run.StartedAt)) {
		t.served = request.ID
	}
	if request.ID == t.served {
		return ""
	}
	return request.ID
}
