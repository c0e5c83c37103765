package bring

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"cellcast.io/cellcast/pkg/cli/registration"
)

// fieldManager owns the fields that registering sets.
const fieldManager = "cellcast"

// Outcome is what became of an object.
type Outcome string

// The outcomes.
const (
	Created   Outcome = "Created"
	Updated   Outcome = "Updated"
	Unchanged Outcome = "Unchanged"
	Deleted   Outcome = "Deleted"
	// Absent: there was nothing to delete.
	Absent Outcome = "Absent"
)

// Site is a cluster in which registering creates objects for one row. What isn't
// marked as that row's is never changed and never deleted.
type Site struct {
	// Where is what the cluster is called in words: the hub, the target.
	Where   string
	client  dynamic.Interface
	row     string
	timeout time.Duration
}

// NewSite returns the cluster behind a configuration; it makes no connection yet.
func NewSite(where string, config *rest.Config, row string, timeout time.Duration) (*Site, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", where, err)
	}
	// A redirect would take the credential along to wherever it points.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	objects, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", where, err)
	}
	return &Site{Where: where, client: objects, row: row, timeout: timeout}, nil
}

// Error is a failure of one object, of which a person is to be told where it was.
type Error struct {
	Where string
	// What is the attempt: create Role x in namespace y.
	What string
	Err  error
}

// Error is what was attempted, and what the cluster says.
func (e *Error) Error() string { return fmt.Sprintf("%s at %s: %v", e.What, e.Where, e.Err) }

// Unwrap is what the cluster says.
func (e *Error) Unwrap() error { return e.Err }

// ErrForeign says that an object of the name is somebody else's.
var ErrForeign = errors.New("there is one that cellcast target register didn't make for this target: it's left as it is")

// errRaced says that somebody else was there at the same moment.
var errRaced = errors.New("somebody else changed it at the same moment: run the same command again")

// Ensure creates an object, or brings what it's for (rules, subjects, data) up to
// date where it was created by an earlier run. What nobody has to change is left,
// whoever's it is.
func (s *Site) Ensure(ctx context.Context, object runtime.Object) (Outcome, error) {
	return s.ensure(ctx, object, nil)
}

// Rehearse asks whether Ensure would do it, and changes nothing. What fails here
// would fail there, too, except for what a dry run can't tell.
func (s *Site) Rehearse(ctx context.Context, object runtime.Object) error {
	_, err := s.ensure(ctx, object, []string{metav1.DryRunAll})
	switch {
	case apierrors.IsNotFound(err) && object.GetObjectKind().GroupVersionKind().Kind == "RoleBinding":
		return nil // its Role, which wasn't made either
	case apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run"):
		return nil // somebody's webhook, which has to see the real one
	default:
		return err
	}
}

func (s *Site) ensure(ctx context.Context, object runtime.Object, dryRun []string) (Outcome, error) {
	wanted, err := registration.Manifest(object)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	client := s.of(wanted)
	present, err := client.Get(ctx, wanted.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if _, err = client.Create(ctx, wanted, metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun}); err != nil {
			return "", s.failed("create", wanted, err)
		}
		return Created, nil
	case err != nil:
		return "", s.failed("get", wanted, err)
	}
	return s.update(ctx, client, present, wanted, dryRun)
}

func (s *Site) update(ctx context.Context, client dynamic.ResourceInterface, present, wanted *unstructured.Unstructured, dryRun []string) (Outcome, error) {
	field := payload(wanted)
	same := field != "" && reflect.DeepEqual(present.Object[field], wanted.Object[field]) &&
		present.GetAnnotations()[AnnotationAccount] == wanted.GetAnnotations()[AnnotationAccount]
	if fixed(present, wanted) && (same || field == "" && s.Owns(present)) {
		return Unchanged, nil
	}
	if !s.Owns(present) || !fixed(present, wanted) {
		return "", s.failed("update", wanted, ErrForeign)
	}
	present.Object[field] = wanted.Object[field]
	annotations := present.GetAnnotations()
	delete(annotations, AnnotationAccount)
	for name, value := range wanted.GetAnnotations() {
		annotations[name] = value
	}
	present.SetAnnotations(annotations)
	if _, err := client.Update(ctx, present, metav1.UpdateOptions{FieldManager: fieldManager, DryRun: dryRun}); err != nil {
		return "", s.failed("update", wanted, err)
	}
	return Updated, nil
}

// payload is the field that an object of a kind is for; empty where it's for its
// being there.
func payload(object *unstructured.Unstructured) string {
	if object.Object["type"] == string(corev1.SecretTypeServiceAccountToken) {
		return "" // the cluster fills it
	}
	switch object.GetKind() {
	case "Role":
		return "rules"
	case "RoleBinding":
		return "subjects"
	case "Secret":
		return "data"
	default:
		return ""
	}
}

// fixed reports whether what no update can change is as wanted.
func fixed(present, wanted *unstructured.Unstructured) bool {
	role, _, _ := unstructured.NestedString(present.Object, "roleRef", "name")
	wantedRole, _, _ := unstructured.NestedString(wanted.Object, "roleRef", "name")
	kind, _, _ := unstructured.NestedString(present.Object, "roleRef", "kind")
	wantedKind, _, _ := unstructured.NestedString(wanted.Object, "roleRef", "kind")
	return role == wantedRole && kind == wantedKind && reflect.DeepEqual(present.Object["type"], wanted.Object["type"]) &&
		present.GetAnnotations()[corev1.ServiceAccountNameKey] == wanted.GetAnnotations()[corev1.ServiceAccountNameKey]
}

// Owns reports whether registering this row made an object.
func (s *Site) Owns(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[AnnotationTarget] == s.row
}

// Get returns an object; nil where there is none.
func (s *Site) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	object, err := s.client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, &Error{s.Where, fmt.Sprintf("get %s %s in namespace %s", resource.Resource, name, namespace), err}
	}
	return object, nil
}

// Delete deletes an object that registering this row made: that very one, should
// another of the name come in between.
func (s *Site) Delete(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (Outcome, error) {
	object, err := s.Get(ctx, resource, namespace, name)
	if err != nil || object == nil {
		return Absent, err
	}
	if !s.Owns(object) {
		return "", s.failed("delete", object, ErrForeign)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	uid := object.GetUID()
	err = s.client.Resource(resource).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	switch {
	case apierrors.IsNotFound(err):
		return Absent, nil
	case err != nil:
		return "", s.failed("delete", object, err)
	}
	return Deleted, nil
}

func (s *Site) of(object *unstructured.Unstructured) dynamic.ResourceInterface {
	// The guess is right for each kind that is created here.
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return s.client.Resource(resource).Namespace(object.GetNamespace())
}

func (s *Site) failed(verb string, object *unstructured.Unstructured, err error) error {
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		err = errRaced
	}
	return &Error{s.Where, verb + " " + Named(object), err}
}

// Named is an object in words.
func Named(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s in namespace %s", object.GetKind(), object.GetName(), object.GetNamespace())
}
