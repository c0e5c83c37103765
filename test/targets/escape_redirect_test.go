package targets

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// redirected are the items that fail where a call is answered by a redirect. The
// looks at the canary and its deletion are no item of their own.
func redirected() map[call]registryv1alpha1.TargetCheckName {
	return map[call]registryv1alpha1.TargetCheckName{
		callWhoAmI:    registryv1alpha1.CheckReachable,
		callNamespace: registryv1alpha1.CheckNamespace,
		callAccess:    registryv1alpha1.CheckPermissions,
		callRules:     registryv1alpha1.CheckExcess,
		callKeys:      registryv1alpha1.CheckSigningKeys,
		callDiscovery: registryv1alpha1.CheckSigningKeys,
		callCreatePod: registryv1alpha1.CheckCanary,
		callGetPod:    "",
		callDeletePod: "",
	}
}

// TestARedirectIsNotFollowed: the defences are the client's CheckRedirect, and
// behind it that its token is shown to the registered host alone. The other host
// would be believed: its certificate is of the same CA. The same holds for another
// port, so the two may have one address.
func TestARedirectIsNotFollowed(t *testing.T) {
	n := newTenant(t)
	a := newAuthority(t)
	var elsewhere atomic.Int64
	other := a.serve(t, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		status(w, http.StatusTeapot, "Teapot")
	}))

	targets := map[string]*fakeTarget{}
	codes := []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}
	for i, which := range slices.Sorted(maps.Keys(redirected())) {
		for _, code := range codes {
			f := a.target(t, "key-1")
			looked := make(chan struct{}, 1024)
			f.does(which, func(w http.ResponseWriter, r *http.Request) {
				looked <- struct{}{}
				http.Redirect(w, r, other.URL+r.URL.Path, code)
			})
			f.lives(t, func() { // so that the hub looks at the pod at least once
				if which == callGetPod {
					<-looked
				}
			})
			name := fmt.Sprintf("redirect-%d-%d", i, code)
			targets[name] = f
			n.registers(name, f.kubeconfig(t))
		}
	}
	for i, which := range slices.Sorted(maps.Keys(redirected())) {
		for _, code := range codes {
			t.Run(fmt.Sprintf("%s by %d", which, code), func(t *testing.T) {
				name := fmt.Sprintf("redirect-%d-%d", i, code)
				row := n.ended(name, "")
				if targets[name].asked(which) == 0 {
					t.Fatalf("the call wasn't made: %+v", row.Status.Checks)
				}
				item := redirected()[which]
				if item == "" {
					return
				}
				if c := check(t, row, item); c.Result != registryv1alpha1.CheckFailed {
					t.Errorf("the item is %+v", c)
				}
				if row.Status.State == registryv1alpha1.TargetReady {
					t.Error("it's Ready")
				}
			})
		}
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("the other host got %d requests", n)
	}
	for name, f := range targets {
		hosts, bearers := map[string]bool{}, map[string]bool{}
		for _, r := range f.came() {
			hosts[r.host], bearers[r.bearerSHA256] = true, true
		}
		want := map[string]bool{sha("Bearer " + f.bearer): true}
		if diff := cmp.Diff(want, bearers); diff != "" {
			t.Errorf("%s was shown other tokens (-want +got):\n%s", name, diff)
		}
		if want := map[string]bool{f.Listener.Addr().String(): true}; !cmp.Equal(want, hosts) {
			t.Errorf("%s was asked as %v", name, hosts)
		}
	}
}
