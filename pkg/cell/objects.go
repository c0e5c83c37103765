package cell

import (
	"context"
	"errors"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CreateTokenReview asks the cell about a token (TokenReview). What comes back is
// the cell's word.
func (c *Client) CreateTokenReview(ctx context.Context, review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	answer := &authenticationv1.TokenReview{}
	err := c.call(ctx, func(ctx context.Context) error {
		return c.api.Post().AbsPath("/apis/authentication.k8s.io/v1/tokenreviews").
			Body(review).MaxRetries(0).Do(ctx).Into(answer)
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// ReviewAccess asks whether the hub may do this there (SelfSubjectAccessReview).
func (c *Client) ReviewAccess(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{}
	err := c.call(ctx, func(ctx context.Context) error {
		return c.api.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").
			Body(&authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
			}).MaxRetries(0).Do(ctx).Into(review)
	})
	return err == nil && review.Status.Allowed && !review.Status.Denied, err
}

// ReviewRules asks what the hub may do in the namespace (SelfSubjectRulesReview).
// The answer may be incomplete, and says so.
func (c *Client) ReviewRules(ctx context.Context, namespace string) (authorizationv1.SubjectRulesReviewStatus, error) {
	review := &authorizationv1.SelfSubjectRulesReview{}
	err := c.call(ctx, func(ctx context.Context) error {
		return c.api.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews").
			Body(&authorizationv1.SelfSubjectRulesReview{
				Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
			}).MaxRetries(0).Do(ctx).Into(review)
	})
	return review.Status, err
}

// Metadata reads the metadata of an object by its path, such as
// /api/v1/namespaces/team/secrets/pull, and nothing of its content.
func (c *Client) Metadata(ctx context.Context, path string) (metav1.ObjectMeta, error) {
	object := &metav1.PartialObjectMetadata{}
	err := c.call(ctx, func(ctx context.Context) error {
		err := c.api.Get().AbsPath(path).
			SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").
			MaxRetries(0).Do(ctx).Into(object)
		if err == nil && object.Name == "" {
			return errors.New("the answer is no object")
		}
		return err
	})
	return object.ObjectMeta, err
}

// Document reads what the cell answers at a path that isn't an object's, such as
// /.well-known/openid-configuration or /apis/GROUP/VERSION: unparsed, and at most
// MaxAnswer bytes.
func (c *Client) Document(ctx context.Context, path string) (document []byte, err error) {
	err = c.call(ctx, func(ctx context.Context) error {
		document, err = c.api.Get().AbsPath(path).SetHeader("Accept", "application/json").MaxRetries(0).Do(ctx).Raw()
		return err
	})
	if err != nil {
		return nil, err
	}
	return document, nil
}

// CreatePod makes a pod and returns it as the cell has it.
func (c *Client) CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	made := &corev1.Pod{}
	err := c.call(ctx, func(ctx context.Context) error {
		return c.api.Post().AbsPath("/api/v1").Namespace(pod.Namespace).Resource("pods").
			Body(pod).MaxRetries(0).Do(ctx).Into(made)
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// GetPod reads a pod.
func (c *Client) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := c.call(ctx, func(ctx context.Context) error {
		return c.api.Get().AbsPath("/api/v1").Namespace(namespace).Resource("pods").Name(name).
			MaxRetries(0).Do(ctx).Into(pod)
	})
	if err != nil {
		return nil, err
	}
	return pod, nil
}

// DeletePod deletes a pod, with the grace that its spec gives: the one of this
// UID, or whichever there is where it's empty.
func (c *Client) DeletePod(ctx context.Context, namespace, name string, uid types.UID) error {
	options := &metav1.DeleteOptions{}
	if uid != "" {
		options.Preconditions = metav1.NewUIDPreconditions(string(uid))
	}
	return c.call(ctx, func(ctx context.Context) error {
		return c.api.Delete().AbsPath("/api/v1").Namespace(namespace).Resource("pods").Name(name).
			Body(options).MaxRetries(0).Do(ctx).Error()
	})
}
