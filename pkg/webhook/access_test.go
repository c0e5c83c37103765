package webhook_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cellcast.io/cellcast/pkg/webhook"
)

// reviews answers every review with the same status, and keeps the last.
type reviews struct {
	status authorizationv1.SubjectAccessReviewStatus
	err    error
	asked  authorizationv1.SubjectAccessReviewSpec
}

func (r *reviews) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	r.asked = review.Spec
	return &authorizationv1.SubjectAccessReview{Status: r.status}, r.err
}

func TestAllowed(t *testing.T) {
	for sentence, tc := range map[string]struct {
		status authorizationv1.SubjectAccessReviewStatus
		want   bool
	}{
		"allowed":                          {authorizationv1.SubjectAccessReviewStatus{Allowed: true}, true},
		"not allowed":                      {authorizationv1.SubjectAccessReviewStatus{}, false},
		"denied, whatever else":            {authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}, false},
		"not told, with a dangling role":   {authorizationv1.SubjectAccessReviewStatus{EvaluationError: "role not found"}, false},
		"allowed, by another role than it": {authorizationv1.SubjectAccessReviewStatus{Allowed: true, EvaluationError: "role not found"}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := webhook.NewAccess(&reviews{status: tc.status}).Allowed(t.Context(), authenticationv1.UserInfo{}, authorizationv1.ResourceAttributes{})
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestAllowedAsksWithAllThatIsKnownOfTheUser(t *testing.T) {
	attributes := authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: "a", Name: "b"}
	r := &reviews{}
	if _, err := webhook.NewAccess(r).Allowed(t.Context(), authenticationv1.UserInfo{
		Username: "alice", UID: "1", Groups: []string{"payments"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"x", "y"}},
	}, attributes); err != nil {
		t.Fatal(err)
	}
	want := authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &attributes, User: "alice", UID: "1", Groups: []string{"payments"},
		Extra: map[string]authorizationv1.ExtraValue{"scopes": {"x", "y"}},
	}
	if diff := cmp.Diff(want, r.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestAllowedWithoutAnAnswerIsAFault(t *testing.T) {
	down := errors.New("connection refused")
	got, err := webhook.NewAccess(&reviews{status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}, err: down}).
		Allowed(t.Context(), authenticationv1.UserInfo{}, authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets"})
	if got || !errors.Is(err, down) {
		t.Errorf("got %v, %v", got, err)
	}
}
