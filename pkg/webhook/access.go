package webhook

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reviewer creates SubjectAccessReviews; client-go's typed client is one.
type Reviewer interface {
	Create(context.Context, *authorizationv1.SubjectAccessReview, metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// Access asks the hub's API server what a user may do there.
type Access struct{ reviews Reviewer }

// NewAccess returns an Access.
func NewAccess(reviews Reviewer) Access { return Access{reviews} }

// reviewPatience is less than the API server waits for the webhook.
const reviewPatience = 4 * time.Second

// Allowed reports whether the user may do that, with all that the API server
// knows of the user. What it can't tell, it doesn't allow. The error is a fault.
func (a Access) Allowed(ctx context.Context, user authenticationv1.UserInfo, attributes authorizationv1.ResourceAttributes) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewPatience)
	defer cancel()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &attributes,
		User:               user.Username,
		Groups:             user.Groups,
		UID:                user.UID,
		Extra:              extra(user.Extra),
	}}
	answer, err := a.reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking whether the user may %s %s: %w", attributes.Verb, attributes.Resource, err)
	}
	return answer.Status.Allowed && !answer.Status.Denied, nil
}

// extra is the same in the words of the other API.
func extra(values map[string]authenticationv1.ExtraValue) map[string]authorizationv1.ExtraValue {
	if values == nil {
		return nil
	}
	same := make(map[string]authorizationv1.ExtraValue, len(values))
	for key, value := range values {
		same[key] = authorizationv1.ExtraValue(value)
	}
	return same
}
