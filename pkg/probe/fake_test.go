package probe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/probe/contract"
)

var _ API = (*cell.Client)(nil)

// target is a cluster as the registered credential sees it: what it may, what is
// there, and how its kubelet treats a pod.
type target struct {
	mu        sync.Mutex
	diary     *[]string // of the run's steps that an order is asked of
	user      string
	rights    map[string]bool              // "create pods", "get secrets pull"
	metadata  map[string]metav1.ObjectMeta // by path
	documents map[string]string            // by path
	rules     authorizationv1.SubjectRulesReviewStatus
	// fails are what a call ends with in place of an answer, by its method.
	fails map[string]error
	// admit is what admission has against a pod.
	admit error
	// ends is when a pod of the canary's name is gone.
	ends time.Time
	// kubelet is what has become of a pod of this age.
	kubelet func(age time.Duration) corev1.PodStatus
	pods    map[string]*corev1.Pod
	made    *corev1.Pod // the last one, as it was asked for
	whoAmIs int
	crowd   int // reviews under way
	crowded int // the most there were
}

const (
	kueue   = "/apis/kueue.x-k8s.io"
	agents  = "/apis/agents.x-k8s.io"
	jwks    = "/openid/v1/jwks"
	account = "system:serviceaccount:team:cellcast-lab"
)

// newTarget is a target on which all is as it shall be.
func newTarget(t *testing.T, spec registryv1alpha1.ClusterTargetSpec) *target {
	t.Helper()
	w := &target{
		diary:  &[]string{},
		user:   account,
		rights: map[string]bool{},
		metadata: map[string]metav1.ObjectMeta{
			"/api/v1/namespaces/team":                              {Name: "team"},
			"/api/v1/namespaces/team/secrets/pull":                 {Name: "pull"},
			kueue + "/v1beta2/namespaces/team/localqueues/measure": {Name: "measure"},
		},
		documents: map[string]string{
			discoveryPath:        `{"issuer":"https://kubernetes.default.svc.cluster.local","jwks_uri":"https://10.0.0.1/openid/v1/jwks"}`,
			jwks:                 keySet(t),
			kueue:                `{"kind":"APIGroup","versions":[{"version":"v1beta1"},{"version":"v1beta2"}],"preferredVersion":{"version":"v1beta2"}}`,
			agents:               `{"kind":"APIGroup","versions":[{"version":"v1alpha1"}],"preferredVersion":{"version":"v1alpha1"}}`,
			agents + "/v1alpha1": `{"kind":"APIResourceList","resources":[{"name":"sandboxes/status"},{"name":"sandboxes"}]}`,
		},
		fails:   map[string]error{},
		kubelet: func(time.Duration) corev1.PodStatus { return started() },
		pods:    map[string]*corev1.Pod{},
	}
	for _, part := range contract.Parts() {
		for _, right := range part.Rights(spec) {
			for _, q := range (&probe{}).questions([]contract.Right{right}) {
				w.rights[q.name] = true
			}
		}
	}
	w.rules = rulesOf(spec)
	return w
}

// rulesOf is what an API server lists of a credential with the contract's Roles.
func rulesOf(spec registryv1alpha1.ClusterTargetSpec) authorizationv1.SubjectRulesReviewStatus {
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{
			{Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"}},
			{Verbs: []string{"create"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"selfsubjectreviews"}},
		},
		NonResourceRules: []authorizationv1.NonResourceRule{
			{Verbs: []string{"get"}, NonResourceURLs: []string{"/api", "/api/*", "/healthz", "/version/", "/openid/v1/jwks/"}},
		},
	}
	for _, part := range contract.Parts() {
		for _, r := range part.Rights(spec) {
			status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: r.Verbs, APIGroups: []string{r.Group}, Resources: []string{r.Resource}, ResourceNames: r.Names})
		}
	}
	return status
}

func keySet(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "one", Algorithm: "ES256", Use: "sig"}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(set)
}

// fail is a failed call as the client of a target gives it.
func fail(kind failure.Kind, cause error) error {
	return &failure.Error{Kind: kind, Cell: "target:u-1", Err: cause}
}

// answered is an answer of the API server that is an error.
func answered(status *apierrors.StatusError) error {
	kind, _ := failure.FromStatus(status)
	return fail(kind, status)
}

func notFound(what string) error {
	return answered(apierrors.NewNotFound(schema.GroupResource{Resource: what}, what))
}

func (w *target) note(format string, args ...any) {
	*w.diary = append(*w.diary, fmt.Sprintf(format, args...))
}

// enter is the way of each call: it can be cut off, and it can break.
func (w *target) enter(ctx context.Context, method string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return fail(failure.Interrupted, ctx.Err())
	}
	return w.fails[method]
}

// may is RBAC: a right on a resource counts for each of its objects.
func (w *target) may(verb, on, name string) bool {
	return w.rights[verb+" "+on] || name != "" && w.rights[verb+" "+on+" "+name]
}

func (w *target) need(verb, on, name string) error {
	if w.may(verb, on, name) {
		return nil
	}
	return answered(apierrors.NewForbidden(schema.GroupResource{Resource: on}, name, fmt.Errorf("User %q cannot %s it", w.user, verb)))
}

func (w *target) WhoAmI(ctx context.Context) (authenticationv1.UserInfo, error) {
	w.whoAmIs++
	if err := w.enter(ctx, "WhoAmI"); err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return authenticationv1.UserInfo{Username: w.user}, nil
}

func (w *target) ReviewAccess(ctx context.Context, a authorizationv1.ResourceAttributes) (bool, error) {
	if err := w.enter(ctx, "ReviewAccess"); err != nil {
		return false, err
	}
	w.mu.Lock()
	w.crowd++
	w.crowded = max(w.crowded, w.crowd)
	w.mu.Unlock()
	time.Sleep(10 * time.Millisecond) // of the bubble: a review takes its time
	w.mu.Lock()
	defer w.mu.Unlock()
	w.crowd--
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	return a.Namespace == "team" && w.may(a.Verb, contract.On(a.Group, resource), a.Name), nil
}

func (w *target) ReviewRules(ctx context.Context, _ string) (authorizationv1.SubjectRulesReviewStatus, error) {
	return w.rules, w.enter(ctx, "ReviewRules")
}

func (w *target) Metadata(ctx context.Context, path string) (metav1.ObjectMeta, error) {
	if err := w.enter(ctx, "Metadata"); err != nil {
		return metav1.ObjectMeta{}, err
	}
	parts := strings.Split(path, "/")
	on, name := parts[len(parts)-2], parts[len(parts)-1]
	if parts[1] == "apis" {
		on = contract.On(parts[2], on)
	}
	if err := w.need("get", on, name); err != nil {
		return metav1.ObjectMeta{}, err
	}
	metadata, there := w.metadata[path]
	if !there {
		return metav1.ObjectMeta{}, notFound(name)
	}
	return metadata, nil
}

func (w *target) Document(ctx context.Context, path string) ([]byte, error) {
	if err := w.enter(ctx, "Document "+path); err != nil {
		return nil, err
	}
	document, there := w.documents[path]
	if !there {
		return nil, notFound(path)
	}
	return []byte(document), nil
}

func (w *target) JWKS(ctx context.Context) ([]byte, error) { return w.Document(ctx, jwks) }

func (w *target) CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	w.note("create %s", pod.Name)
	if err := w.enter(ctx, "CreatePod"); err != nil {
		return nil, err
	}
	if err := w.need("create", "pods", ""); err != nil {
		return nil, err
	}
	if w.admit != nil {
		return nil, w.admit
	}
	if time.Now().Before(w.ends) {
		return nil, answered(apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, pod.Name))
	}
	made := pod.DeepCopy()
	made.UID, made.CreationTimestamp = "pod-uid", metav1.Now()
	w.made, w.pods[pod.Name] = made.DeepCopy(), made
	return made.DeepCopy(), nil
}

func (w *target) GetPod(ctx context.Context, _, name string) (*corev1.Pod, error) {
	if err := w.enter(ctx, "GetPod"); err != nil {
		return nil, err
	}
	pod, there := w.pods[name]
	if !there {
		return nil, notFound(name)
	}
	seen := pod.DeepCopy()
	seen.Status = w.kubelet(time.Since(pod.CreationTimestamp.Time))
	return seen, nil
}

func (w *target) DeletePod(ctx context.Context, _, name string, uid types.UID) error {
	w.note("delete %s %q", name, uid)
	if err := w.enter(ctx, "DeletePod"); err != nil {
		return err
	}
	pod, there := w.pods[name]
	switch {
	case !there:
		return notFound(name)
	case uid != "" && uid != pod.UID:
		return answered(apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, name, errors.New("another UID")))
	}
	delete(w.pods, name)
	return nil
}

// record is the progress of a run, as a row would have it.
type record struct {
	diary *[]string
	// receiptAfter is how long after its creation the canary's post is recorded;
	// negative means never.
	receiptAfter time.Duration
	fails        map[string]error
	created      time.Time
	checks       []registryv1alpha1.TargetCheck
	counts       []int
	identity     registryv1alpha1.TargetIdentity
}

func (r *record) note(format string, args ...any) {
	*r.diary = append(*r.diary, fmt.Sprintf(format, args...))
}

func (r *record) Checked(_ context.Context, checks []registryv1alpha1.TargetCheck) {
	r.checks, r.counts = checks, append(r.counts, len(checks))
}

func (r *record) Identified(_ context.Context, identity registryv1alpha1.TargetIdentity) error {
	r.note("identified")
	r.identity = identity
	return r.fails["Identified"]
}

func (r *record) CanaryNamed(_ context.Context, name string) error {
	r.note("named %s", name)
	return r.fails["CanaryNamed"]
}

func (r *record) CanaryCreated(_ context.Context, uid types.UID) error {
	r.note("created %s", uid)
	r.created = time.Now()
	return r.fails["CanaryCreated"]
}

func (r *record) AwaitReceipt(ctx context.Context) error {
	if err := r.fails["AwaitReceipt"]; err != nil {
		return err
	}
	if r.receiptAfter < 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := sleep(ctx, time.Until(r.created.Add(r.receiptAfter))); err != nil {
		return err
	}
	r.note("received")
	return nil
}

func (r *record) CanaryDeleted(ctx context.Context) {
	r.note("deleted, with a context that is over: %t", ctx.Err() != nil)
}

// trial is a run under test.
type trial struct {
	spec   Spec
	target *target
	record *record
	open   Open
	ctx    context.Context
}

// newTrial is a run in which every item passes.
func newTrial(t *testing.T) *trial {
	t.Helper()
	spec := registryv1alpha1.ClusterTargetSpec{
		CredentialRef: registryv1alpha1.TargetCredentialRef{SecretRef: &registryv1alpha1.TargetSecretRef{Name: "lab-kubeconfig"}},
		Namespace:     "team", ServiceAccountName: "turns", ImagePullSecrets: []string{"pull"},
		Queue: "measure", SandboxDriver: registryv1alpha1.SandboxKubernetes,
	}
	w := newTarget(t, spec)
	tr := &trial{
		spec: Spec{
			Namespace: "payments", Name: "lab", UID: "u-1", Target: spec, RunID: "r-1",
			Ingest:      Ingest{URL: "https://hub.example.com", CA: []byte("PEM"), Audience: "https://hub.example.com"},
			CanaryImage: "registry.example.com/canary@sha256:0",
		},
		target: w,
		record: &record{diary: w.diary, receiptAfter: 5 * time.Second, fails: map[string]error{}},
		ctx:    t.Context(),
	}
	tr.open = func(context.Context) (API, error) { return tr.target, nil }
	return tr
}

func (tr *trial) run() Result { return Run(tr.ctx, tr.spec, tr.open, tr.record) }

// inBubble runs a test in the time of a bubble.
func inBubble(t *testing.T, test func(t *testing.T, tr *trial)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newTrial(t)) })
}

// results are the items by how they ended.
func results(r Result) map[registryv1alpha1.TargetCheckName]registryv1alpha1.CheckResult {
	out := map[registryv1alpha1.TargetCheckName]registryv1alpha1.CheckResult{}
	for _, c := range r.Checks {
		out[c.Name] = c.Result
	}
	return out
}

func checkOf(t *testing.T, r Result, name registryv1alpha1.TargetCheckName) registryv1alpha1.TargetCheck {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no item %s in %v", name, maps.Collect(maps.All(results(r))))
	return registryv1alpha1.TargetCheck{}
}

func started() corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
}

func heldBack(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}}
}

func exited(code int32, reason, message string) corev1.PodStatus {
	phase := corev1.PodFailed
	if code == 0 {
		phase = corev1.PodSucceeded
	}
	return corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}}}}
}

func serverError(code int, text string) error {
	return answered(&apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(code), Message: text}})
}

var unauthorized = serverError(http.StatusUnauthorized, "Unauthorized")
