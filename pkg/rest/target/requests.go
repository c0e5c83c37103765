package target

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	registryclient "cellcast.io/cellcast/generated/clientset/versioned/typed/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
)

// Writer writes requests into status.request of the rows. It changes nothing
// else of them.
type Writer struct {
	Client registryclient.ClusterTargetsGetter
}

var _ Requests = Writer{}

// patience is how long a request waits for a leader. One that wasn't begun by
// then was lost with its leader, and is replaced.
const patience = 10 * time.Minute

// maxTries is how often a row is read anew because somebody else changed it.
const maxTries = 5

// Request asks for a run with the id, or joins the one that is under way. Of two
// who ask at once, one asks and the other joins. The error is a 404 where the row
// is gone, a refusal where others keep changing it, or a fault.
func (w Writer) Request(ctx context.Context, row *registryv1alpha1.ClusterTarget, id string, now time.Time) (run string, joined bool, err error) {
	rows := w.Client.ClusterTargets(row.Namespace)
	for range maxTries {
		if run, joined := underWay(row, now); joined {
			return run, true, nil
		}
		patch, err := patchRequest(row, id, now)
		if err != nil {
			return "", false, err
		}
		_, err = rows.Patch(ctx, row.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		if err == nil {
			return id, false, nil
		}
		if !apierrors.IsConflict(err) {
			return "", false, failed(row, err)
		}
		// The cache may be behind: the row itself decides.
		live, err := rows.Get(ctx, row.Name, metav1.GetOptions{})
		if err != nil {
			return "", false, failed(row, err)
		}
		if live.UID != row.UID { // another target of that name
			return "", false, notFound(row.Name)
		}
		row = live
	}
	return "", false, refusal.New(refusal.RateLimited, "target %s/%s is being changed all the time; ask again", row.Namespace, row.Name)
}

// underWay is the id of the run that whoever asks now joins: one that hasn't
// ended, or one that was asked for a short while ago and hasn't begun. A run that
// begins while a request waits takes its id, so one that began later under
// another id says that the request was served before. Of times in the same
// second nothing can be told: then it waits.
func underWay(row *registryv1alpha1.ClusterTarget, now time.Time) (id string, ok bool) {
	run, request := row.Status.Run, row.Status.Request
	switch {
	case run != nil && run.FinishedAt == nil:
		return run.ID, true
	case request == nil, run != nil && (run.ID == request.ID || request.RequestedAt.Before(&run.StartedAt)):
		return "", false
	case now.Sub(request.RequestedAt.Time) < patience:
		return request.ID, true
	default:
		return "", false
	}
}

// patchRequest is a JSON merge patch that holds only for the row as it was read.
func patchRequest(row *registryv1alpha1.ClusterTarget, id string, now time.Time) ([]byte, error) {
	type metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	}
	type status struct {
		Request registryv1alpha1.ProbeRequest `json:"request"`
	}
	return json.Marshal(struct {
		Metadata metadata `json:"metadata"`
		Status   status   `json:"status"`
	}{
		metadata{row.ResourceVersion},
		status{registryv1alpha1.ProbeRequest{ID: id, RequestedAt: metav1.NewTime(now)}},
	})
}

// failed is a 404 of the caller's own resource, or a fault.
func failed(row *registryv1alpha1.ClusterTarget, err error) error {
	if apierrors.IsNotFound(err) {
		return notFound(row.Name)
	}
	return fmt.Errorf("asking for a probe of target %s/%s: %w", row.Namespace, row.Name, err)
}
