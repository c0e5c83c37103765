package cli_test

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object is a stored object.
type object = map[string]any

// fakeAPI is an API server that stores what it's given: objects are created, read,
// updated and deleted by their paths, for whoever has the token mine.
type fakeAPI struct {
	*httptest.Server

	mu sync.Mutex
	// objects are by their paths, and changes are the writes in their order.
	objects map[string]object
	changes []string
	// fails answers a request, METHOD PATH, with a failure.
	fails map[string]*apierrors.StatusError
	// creating is told of what is created, before it's stored.
	creating func(at string, o object)
	// reading is told of what is read.
	reading func(at string, o object)
	// sticky is the path of what has a finalizer.
	sticky string
	// rehearsed are the paths of dry runs, rehearsedAs what was sent with them, and
	// rehearsing refuses one; it may be nil.
	rehearsed   []string
	rehearsedAs map[string]object
	rehearsing  func(at string) *apierrors.StatusError
	// failsLater says that dry runs go well, whatever fails.
	failsLater bool
	// other answers what isn't an object.
	other http.Handler
}

// ownToken is the user's, on every fake API.
const ownToken = "own.SECRET.token"

func newFakeAPI(t testing.TB) *fakeAPI {
	t.Helper()
	f := &fakeAPI{objects: map[string]object{}, fails: map[string]*apierrors.StatusError{}, rehearsedAs: map[string]object{},
		creating: func(string, object) {}, reading: func(string, object) {}, other: http.NotFoundHandler()}
	f.Server = httptest.NewTLSServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeAPI) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw}))
}

func (f *fakeAPI) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	failure := f.fails[r.Method+" "+r.URL.Path]
	switch {
	case r.Header.Get("Authorization") != "Bearer "+ownToken:
		answer(w, apierrors.NewUnauthorized("who is this?"))
	case failure != nil && (!f.failsLater || !r.URL.Query().Has("dryRun")):
		answer(w, failure)
	case strings.HasPrefix(r.URL.Path, "/apis/cellcast.io/"):
		f.other.ServeHTTP(w, r)
	case r.Method == http.MethodPost:
		f.create(w, r)
	default:
		f.one(w, r)
	}
}

func (f *fakeAPI) create(w http.ResponseWriter, r *http.Request) {
	o := decoded(r)
	at := path.Join(r.URL.Path, o["metadata"].(object)["name"].(string))
	if r.URL.Query().Get("dryRun") == "All" {
		f.rehearse(w, at, o)
		return
	}
	if f.objects[at] != nil {
		answer(w, apierrors.NewAlreadyExists(schema.GroupResource{}, path.Base(at)))
		return
	}
	o["metadata"].(object)["uid"] = "uid-of-" + path.Base(at)
	f.creating(at, o)
	f.objects[at] = o
	f.changes = append(f.changes, "create "+at)
	stored(w, o)
}

func (f *fakeAPI) rehearse(w http.ResponseWriter, at string, o object) {
	f.rehearsed = append(f.rehearsed, at)
	f.rehearsedAs[at] = o
	if f.rehearsing != nil {
		if refused := f.rehearsing(at); refused != nil {
			answer(w, refused)
			return
		}
	}
	stored(w, o)
}

func (f *fakeAPI) one(w http.ResponseWriter, r *http.Request) {
	o := f.objects[r.URL.Path]
	switch {
	case o == nil:
		answer(w, apierrors.NewNotFound(schema.GroupResource{}, path.Base(r.URL.Path)))
	case r.Method == http.MethodGet:
		f.reading(r.URL.Path, o)
		stored(w, o)
	case r.Method == http.MethodPut && r.URL.Query().Get("dryRun") == "All":
		f.rehearse(w, r.URL.Path, decoded(r))
	case r.Method == http.MethodPut:
		f.objects[r.URL.Path] = decoded(r)
		f.changes = append(f.changes, "update "+r.URL.Path)
		stored(w, f.objects[r.URL.Path])
	case r.Method == http.MethodDelete:
		uid, _ := decoded(r)["preconditions"].(object)
		if uid["uid"] != o["metadata"].(object)["uid"] {
			answer(w, apierrors.NewConflict(schema.GroupResource{}, path.Base(r.URL.Path), io.EOF))
			return
		}
		if r.URL.Path != f.sticky {
			delete(f.objects, r.URL.Path)
		}
		f.changes = append(f.changes, "delete "+r.URL.Path)
		stored(w, object{"kind": "Status", "apiVersion": "v1", "status": metav1.StatusSuccess})
	default:
		answer(w, apierrors.NewMethodNotSupported(schema.GroupResource{}, r.Method))
	}
}

func decoded(r *http.Request) object {
	o := object{}
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		panic(err)
	}
	return o
}

func stored(w http.ResponseWriter, o object) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(o); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// paths are those of the objects that there are.
func (f *fakeAPI) paths() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.objects))
}

// at is an object.
func (f *fakeAPI) at(path string) object {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.objects[path]
}

// changed are the writes since the last time.
func (f *fakeAPI) changed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	changes := f.changes
	f.changes = nil
	return changes
}
