package cli_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/seal"
)

// mints makes the owner's hub answer clustertargets/token, and counts the answers.
// What it answers is changed on its way.
func (o *owner) mints(way func(*cellcastv1alpha1.TargetToken)) *int {
	count := 0
	o.hub.other = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := &cellcastv1alpha1.TargetToken{}
		if err := json.NewDecoder(r.Body).Decode(token); err != nil || r.URL.Path != "/apis/cellcast.io/v1alpha1/namespaces/payments/clustertargets/eu/token" {
			http.NotFound(w, r)
			return
		}
		count++
		recipient, refused := seal.ParseRecipient("spec.recipient", *token.Spec.Recipient)
		if refused != nil {
			answer(w, refused.Status())
			return
		}
		sealed, err := recipient.Seal(issuedToken)
		if err != nil {
			o.t.Error(err)
		}
		token.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("TargetToken"))
		token.Status = cellcastv1alpha1.TargetTokenStatus{RequestID: requestID,
			Target: cellcastv1alpha1.TargetReference{Namespace: "payments", Name: "eu", Address: "target:1234", Endpoint: o.target.URL, CABundle: []byte(o.target.ca())},
			Credential: &cellcastv1alpha1.Credential{SealedToken: sealed, Namespace: "shop", ServiceAccountName: "default",
				ExpirationTimestamp: metav1.NewTime(now.Add(10 * time.Minute))}}
		way(token)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(token)
	})
	return &count
}

func TestATargetsTokenGoesIntoTheFile(t *testing.T) {
	o := newOwner(t)
	o.mints(func(*cellcastv1alpha1.TargetToken) {})
	file := filepath.Join(o.dir, "eu.kubeconfig")
	got := o.ask("target", "token", "eu", "--write-kubeconfig", file)
	diff(t, "the answer", answerOf{0, "", "Wrote DIR/eu.kubeconfig with a credential for shop/default on target eu until 2026-01-02T03:14:05Z: kubectl --kubeconfig DIR/eu.kubeconfig\n"}, got)
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	context := config.Contexts[config.CurrentContext]
	if context.Namespace != "shop" || config.Clusters[context.Cluster].Server != o.target.URL || config.AuthInfos[context.AuthInfo].Token != issuedToken {
		t.Errorf("the kubeconfig isn't the target's: %+v", context)
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %o", info.Mode().Perm())
	}
	// A refused run leaves no earlier one.
	o.hub.other = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, refusal.New(refusal.TargetNotReady, "target payments/eu is CredentialRejected").Status())
	})
	if got := o.ask("target", "token", "eu", "--write-kubeconfig", file); got.code != 4 || !strings.HasPrefix(got.err, "Removed DIR/eu.kubeconfig, which an earlier run wrote.\nError: TargetNotReady: ") {
		t.Errorf("got %+v", got)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the earlier one is there: %v", err)
	}
}

func TestATargetsTokenInTheAnswer(t *testing.T) {
	o := newOwner(t)
	o.mints(func(*cellcastv1alpha1.TargetToken) {})
	got := o.ask("target", "token", "eu", "-o", "json", "--ttl", "15m")
	o.shown.Reset() // here it belongs
	var token cellcastv1alpha1.TargetToken
	if err := json.Unmarshal([]byte(got.out), &token); err != nil || token.Status.Credential.Token != issuedToken || token.Spec.TTL != "15m0s" || token.Spec.Recipient != nil || token.Kind != "TargetToken" {
		t.Errorf("%v: got %+v", err, got)
	}
	if strings.Contains(got.err, "SECRET") {
		t.Errorf("got %s", got.err)
	}
}

func TestATargetsTokenIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		way  func(*cellcastv1alpha1.TargetToken)
		code int
		err  string
	}{
		"where it comes in the clear": {func(t *cellcastv1alpha1.TargetToken) {
			t.Status.Credential.Token, t.Status.Credential.SealedToken = issuedToken, ""
		}, 1, "Error: the hub answered with a token that isn't sealed"},
		"where it's sealed to another": {func(t *cellcastv1alpha1.TargetToken) {
			key, _ := seal.NewKey()
			other, _ := seal.ParseRecipient("", *key.Recipient())
			t.Status.Credential.SealedToken, _ = other.Seal(issuedToken)
		}, 1, "Error: the sealed token isn't sealed to this key"},
		"where there is none": {func(t *cellcastv1alpha1.TargetToken) { t.Status.Credential = nil }, 5, "Error: the hub returned no credential for target payments/eu\n"},
		"for a server in the clear": {func(t *cellcastv1alpha1.TargetToken) { t.Status.Target.Endpoint = "http://eu.example.com" }, 1,
			`Error: a kubeconfig for target "eu", as for a cell: the hub's answer has no https endpoint`},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwner(t)
			o.mints(test.way)
			got := o.ask("target", "token", "eu", "--write-kubeconfig", filepath.Join(o.dir, "eu.kubeconfig"))
			if got.code != test.code || !strings.HasPrefix(got.err, test.err) {
				t.Errorf("got %+v, want %s", got, test.err)
			}
			if left, err := filepath.Glob(filepath.Join(o.dir, "*eu.kubeconfig*")); err != nil || len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// The owner mends a target, and waiting doesn't.
func TestATargetThatGivesNoTokenSendsToTheProbe(t *testing.T) {
	const probe = "See what is wrong with the target, and what mends it: kubectl cellcast probe eu -n payments --kubeconfig DIR/hub.kubeconfig --context hub\n"
	for code, want := range map[refusal.Code]answerOf{
		refusal.MintUnavailable: {5, "", probe},
		refusal.MintFailed:      {5, "", probe},
		refusal.TargetNotReady:  {4, "", probe},
		refusal.NotOwner:        {3, "", refusal.NotOwner.Meaning().Next + "\n"},
		refusal.RateLimited:     {4, "", refusal.RateLimited.Meaning().Next + " The hub says to wait 1s.\n"},
	} {
		t.Run(string(code), func(t *testing.T) {
			o := newOwner(t)
			o.hub.other = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				answer(w, refusal.New(code, "the fake says so").Status())
			})
			got := o.ask("target", "token", "eu", "--context", "hub", "--write-kubeconfig", filepath.Join(o.dir, "eu.kubeconfig"))
			got.err = again.ReplaceAllString(got.err, "")
			want.err = "Error: " + string(code) + ": the fake says so\n" + want.err
			diff(t, "the answer", want, got)
		})
	}
}

func TestATargetsTokenThatHasNowhereToGoIsNotAskedFor(t *testing.T) {
	o := newOwner(t)
	count := o.mints(func(*cellcastv1alpha1.TargetToken) {})
	got := o.ask("target", "token", "eu")
	diff(t, "the answer", answerOf{2, "", "Error: the token needs somewhere to go: --write-kubeconfig FILE, or -o json\nSee cellcast target token --help\n"}, got)
	if *count != 0 {
		t.Errorf("asked %d times", *count)
	}
}
