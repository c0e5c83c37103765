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
	asked := *review
	asked.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}
	return create(ctx, c, c.api.Post().AbsPath("/apis/authentication.k8s.io/v1/tokenreviews"), &asked)
}

// authorization is the group that says what one may do.
const authorization = "authorization.k8s.io/v1"

// ReviewAccess asks whether the hub may do this there (SelfSubjectAccessReview).
func (c *Client) ReviewAccess(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	answer, err := create(ctx, c, c.api.Post().AbsPath("/apis/"+authorization+"/selfsubjectaccessreviews"), &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorization, Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
	})
	return err == nil && answer.Status.Allowed && !answer.Status.Denied, err
}

// ReviewRules asks what the hub may do in the namespace (SelfSubjectRulesReview).
// The answer may be incomplete, and says so.
func (c *Client) ReviewRules(ctx context.Context, namespace string) (authorizationv1.SubjectRulesReviewStatus, error) {
	var answer authorizationv1.SelfSubjectRulesReview
	request := c.api.Post().AbsPath("/apis/" + authorization + "/selfsubjectrulesreviews")
	err := c.call(ctx, func(ctx context.Context) error {
		return exchange(ctx, request, authorizationv1.SelfSubjectRulesReview{
			TypeMeta: metav1.TypeMeta{APIVersion: authorization, Kind: "SelfSubjectRulesReview"},
			Spec:     authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
		}, &answer, maxRules)
	})
	return answer.Status, err
}

// Metadata reads the metadata of an object by its path, such as
// /api/v1/namespaces/team/secrets/pull, and nothing of its content.
func (c *Client) Metadata(ctx context.Context, path string) (metav1.ObjectMeta, error) {
	var object metav1.PartialObjectMetadata
	request := c.api.Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	err := c.call(ctx, func(ctx context.Context) error {
		err := exchange(ctx, request, nil, &object, maxObject)
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
func (c *Client) Document(ctx context.Context, path string) ([]byte, error) {
	return c.read(ctx, path, "application/json")
}

// CreatePod makes a pod, and returns what GetPod does of it.
func (c *Client) CreatePod(ctx context.Context, made *corev1.Pod) (*corev1.Pod, error) {
	sent := *made
	sent.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	request := c.api.Post().AbsPath("/api/v1").Namespace(made.Namespace).Resource("pods")
	return c.pod(ctx, func(ctx context.Context, answer *pod) error { return exchange(ctx, request, sent, answer, maxObject) })
}

// GetPod reads of a pod which one it is and how it fares: name, namespace, UID and
// status.
func (c *Client) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	request := c.api.Get().AbsPath("/api/v1").Namespace(namespace).Resource("pods").Name(name)
	return c.pod(ctx, func(ctx context.Context, answer *pod) error { return exchange(ctx, request, nil, answer, maxObject) })
}

// pod is what is read of one. A whole one has lists whose elements are a thousand
// bytes in memory.
type pod struct {
	Metadata struct {
		Namespace string    `json:"namespace"`
		Name      string    `json:"name"`
		UID       types.UID `json:"uid"`
	} `json:"metadata"`
	Status struct {
		Phase             corev1.PodPhase       `json:"phase"`
		Reason            string                `json:"reason"`
		Message           string                `json:"message"`
		Conditions        []corev1.PodCondition `json:"conditions"`
		ContainerStatuses []struct {
			State corev1.ContainerState `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

// maxUID is the longest UID of an object; Kubernetes' have 36.
const maxUID = 64

func (c *Client) pod(ctx context.Context, ask func(context.Context, *pod) error) (*corev1.Pod, error) {
	var answer pod
	err := c.call(ctx, func(ctx context.Context) error {
		err := ask(ctx, &answer)
		if err == nil && (answer.Metadata.Name == "" || answer.Metadata.UID == "" || len(answer.Metadata.UID) > maxUID) {
			return errors.New("the answer is no pod")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	found := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: answer.Metadata.Namespace, Name: answer.Metadata.Name, UID: answer.Metadata.UID},
		Status: corev1.PodStatus{
			Phase: answer.Status.Phase, Reason: answer.Status.Reason, Message: answer.Status.Message, Conditions: answer.Status.Conditions,
		},
	}
	for _, container := range answer.Status.ContainerStatuses {
		if len(found.Status.ContainerStatuses) == maxContainers {
			break
		}
		found.Status.ContainerStatuses = append(found.Status.ContainerStatuses, corev1.ContainerStatus{State: container.State})
	}
	return found, nil
}

// maxContainers is how many containers of a pod are looked at.
const maxContainers = 16

// DeletePod deletes a pod, with the grace that its spec gives: the one of this UID,
// or whichever there is where it's empty.
func (c *Client) DeletePod(ctx context.Context, namespace, name string, uid types.UID) error {
	options := metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}}
	if uid != "" {
		options.Preconditions = metav1.NewUIDPreconditions(string(uid))
	}
	request := c.api.Delete().AbsPath("/api/v1").Namespace(namespace).Resource("pods").Name(name)
	return c.call(ctx, func(ctx context.Context) error { return exchange(ctx, request, options, nil, maxObject) })
}
