package agent

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// fakeHub takes reports as the hub does: decoded strictly, for one registered
// cell, under its reporter's token, in sequence.
type fakeHub struct {
	cell string

	mu         sync.Mutex
	token      string
	trouble    error // answered to everything while it's set
	attempts   []time.Time
	reports    []v1alpha1.CellCapacity
	userAgents []string
}

// report is the door without a network: the token is always right.
func (h *fakeHub) report(ctx context.Context, cell string, report *v1alpha1.CellCapacity) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.take(cell, report)
}

func (h *fakeHub) take(cell string, report *v1alpha1.CellCapacity) error {
	h.attempts = append(h.attempts, time.Now())
	if h.trouble != nil {
		return h.trouble
	}
	if cell != h.cell {
		return apierrors.NewNotFound(v1alpha1.Resource("cells"), cell)
	}
	if n := len(h.reports); n > 0 && report.Spec.Sequence <= h.reports[n-1].Spec.Sequence {
		return apierrors.NewConflict(v1alpha1.Resource("cells"), cell, nil)
	}
	h.reports = append(h.reports, *report.DeepCopy())
	return nil
}

func (h *fakeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.userAgents = append(h.userAgents, r.UserAgent())

	report, err := h.read(r)
	if err == nil {
		err = h.take(report.Name, report)
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		status := err.(apierrors.APIStatus).Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(int(status.Code))
		json.NewEncoder(w).Encode(status)
		return
	}
	report.Status.ReceivedAt = metav1.NowMicro()
	w.WriteHeader(http.StatusCreated)
	json.NewEncoder(w).Encode(report)
}

func (h *fakeHub) read(r *http.Request) (*v1alpha1.CellCapacity, error) {
	if r.Method != http.MethodPost || r.URL.Path != "/apis/cellcast.io/v1alpha1/cells/"+h.cell+"/capacity" {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("cells"), strings.TrimPrefix(r.URL.Path, "/"))
	}
	if r.Header.Get("Authorization") != "Bearer "+h.token {
		return nil, apierrors.NewUnauthorized("not the reporter of this cell")
	}
	report := &v1alpha1.CellCapacity{}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(report); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if want := (metav1.TypeMeta{Kind: "CellCapacity", APIVersion: "cellcast.io/v1alpha1"}); report.TypeMeta != want {
		return nil, apierrors.NewBadRequest("unexpected kind " + report.TypeMeta.String())
	}
	return report, nil
}

// set makes every answer from now on err, or the ordinary one again.
func (h *fakeHub) set(trouble error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trouble = trouble
}

func (h *fakeHub) setToken(token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.token = token
}

func (h *fakeHub) taken() []v1alpha1.CellCapacity {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.reports)
}

func (h *fakeHub) attempted() []time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.attempts)
}

// answer is an answer of the hub with a status and a Retry-After in seconds.
func answer(code int, message string, retryAfter int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Message: message,
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfter},
	}}
}
