package targets

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/secret"
)

// team is the namespace on every fake target.
const team = "team"

// call is a request that the probe makes of a target.
type call string

// The calls, in the order in which a probe makes them first.
const (
	callWhoAmI    call = "who the hub is"
	callNamespace call = "the namespace"
	callAccess    call = "a review of rights"
	callRules     call = "the list of rights"
	callKeys      call = "the signing keys"
	callDiscovery call = "the discovery document"
	callCreatePod call = "the creation of the canary"
	callGetPod    call = "a look at the canary"
	callDeletePod call = "the deletion of the canary"
)

// calls are how a request shows which one it is.
func calls() map[call]string {
	return map[call]string{
		callWhoAmI:    "POST /apis/authentication.k8s.io/v1/selfsubjectreviews",
		callNamespace: "GET /api/v1/namespaces/{namespace}",
		callAccess:    "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		callRules:     "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
		callKeys:      "GET /openid/v1/jwks",
		callDiscovery: "GET /.well-known/openid-configuration",
		callCreatePod: "POST /api/v1/namespaces/{namespace}/pods",
		callGetPod:    "GET /api/v1/namespaces/{namespace}/pods/{name}",
		callDeletePod: "DELETE /api/v1/namespaces/{namespace}/pods/{name}",
	}
}

// seen is a request as it came.
type seen struct {
	call         call
	path, host   string
	bearerSHA256 string
}

// fakeTarget is a target in the hands of the test: it does what a Kubernetes API
// does as far as a probe asks, signs whatever the test wants signed, and runs no
// pod. The test posts in a pod's place.
type fakeTarget struct {
	*httptest.Server
	ca     *authority
	issuer string
	// bearer is the only token that it takes.
	bearer string
	// canaries are the pods that the hub has made.
	canaries chan *corev1.Pod

	mu        sync.Mutex
	instead   map[call]http.HandlerFunc
	requests  []seen
	published []podKey
	pods      map[string]*corev1.Pod
}

// target starts a fake target, which signs by a key of this id.
func (a *authority) target(t *testing.T, keyID string) *fakeTarget {
	t.Helper()
	f := &fakeTarget{
		ca: a, issuer: "https://kubernetes.default.svc.cluster.local", bearer: "registered-" + string(uuid.NewUUID()),
		instead: map[call]http.HandlerFunc{}, canaries: make(chan *corev1.Pod, 64), pods: map[string]*corev1.Pod{},
	}
	f.published = []podKey{newPodKey(t, keyID)}
	mux := http.NewServeMux()
	for which, pattern := range calls() {
		mux.HandleFunc(pattern, f.serves(which))
	}
	mux.HandleFunc("/", f.serves(""))
	f.Server = a.serve(t, "127.0.0.1:0", mux)
	return f
}

// kubeconfig is what registers the target.
func (f *fakeTarget) kubeconfig(t *testing.T) []byte {
	t.Helper()
	return must(kubeconfig.New(f.URL, f.ca.pem, secret.New(f.bearer)))(t).Encode()
}

// does has it answer a call in another way.
func (f *fakeTarget) does(which call, instead http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.instead[which] = instead
}

// asked is how many requests of this kind came.
func (f *fakeTarget) asked(which call) int {
	n := 0
	for _, r := range f.came() {
		if r.call == which {
			n++
		}
	}
	return n
}

// came are the requests so far.
func (f *fakeTarget) came() []seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (f *fakeTarget) serves(which call) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.requests = append(f.requests, seen{which, r.URL.Path, r.Host, sha(r.Header.Get("Authorization"))})
		instead := f.instead[which]
		f.mu.Unlock()
		if instead != nil {
			instead(w, r)
			return
		}
		if r.Header.Get("Authorization") != "Bearer "+f.bearer {
			status(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
			return
		}
		f.answer(w, r, which)
	}
}

func (f *fakeTarget) answer(w http.ResponseWriter, r *http.Request, which call) {
	switch which {
	case callWhoAmI:
		write(w, &authenticationv1.SelfSubjectReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
			Status:   authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "system:serviceaccount:" + team + ":" + account}},
		})
	case callNamespace:
		write(w, &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
			ObjectMeta: metav1.ObjectMeta{Name: r.PathValue("namespace")},
		})
	case callAccess:
		write(w, &authorizationv1.SelfSubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
			Status:   authorizationv1.SubjectAccessReviewStatus{Allowed: true},
		})
	case callRules:
		write(w, &authorizationv1.SelfSubjectRulesReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectRulesReview"},
		})
	case callKeys:
		write(w, f.keySet())
	case callDiscovery:
		write(w, map[string]string{"issuer": f.issuer, "jwks_uri": f.URL + "/openid/v1/jwks"})
	case callCreatePod, callGetPod, callDeletePod:
		f.pod(w, r, which)
	default:
		status(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

// pod keeps pods. One that was made is running from then on, by its own account.
func (f *fakeTarget) pod(w http.ResponseWriter, r *http.Request, which call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if which == callCreatePod {
		pod := &corev1.Pod{}
		if err := json.NewDecoder(r.Body).Decode(pod); err != nil {
			status(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
			return
		}
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		pod.UID = uuid.NewUUID()
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}}
		f.pods[pod.Name] = pod
		write(w, pod)
		f.canaries <- pod.DeepCopy()
		return
	}
	pod := f.pods[r.PathValue("name")]
	if pod == nil {
		status(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	if which == callDeletePod {
		delete(f.pods, pod.Name)
	}
	write(w, pod)
}

// running are the pods that it hasn't been told to delete.
func (f *fakeTarget) running() []types.UID {
	f.mu.Lock()
	defer f.mu.Unlock()
	var uids []types.UID
	for _, pod := range f.pods {
		uids = append(uids, pod.UID)
	}
	slices.Sort(uids)
	return uids
}

func write(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object)
}

func status(w http.ResponseWriter, code int32, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: string(reason),
	})
}
