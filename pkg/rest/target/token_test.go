package target

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/caller"
	"cellcast.io/cellcast/pkg/cell/celltest"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/seal"
)

// ask asks for a token of team-a/gpu.
func (w *world) ask(ctx context.Context, spec cellcastv1alpha1.TargetTokenSpec, options *metav1.CreateOptions) (*cellcastv1alpha1.TargetToken, error) {
	got, err := w.Create(ctx, "gpu", &cellcastv1alpha1.TargetToken{Spec: spec}, nil, options)
	if err != nil {
		return nil, err
	}
	return got.(*cellcastv1alpha1.TargetToken), nil
}

// ignored are the fields of a record that differ from run to run.
var ignored = cmpopts.IgnoreFields(audit.Record{}, "Time", "DurationMS", "RequestID")

func TestATokenIsMintedOnTheTargetAndRecorded(t *testing.T) {
	w := newWorld(t)
	got, err := w.ask(as(t, dana), cellcastv1alpha1.TargetTokenSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	credential := got.Status.Credential
	want := &cellcastv1alpha1.TargetToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "gpu"},
		Status: cellcastv1alpha1.TargetTokenStatus{
			RequestID: got.Status.RequestID,
			Target: cellcastv1alpha1.TargetReference{
				Namespace: "team-a", Name: "gpu", Address: "target:uid-1", Endpoint: w.at.Server, CABundle: w.at.CABundle,
			},
			Credential: &cellcastv1alpha1.Credential{
				Token: credential.Token, ExpirationTimestamp: credential.ExpirationTimestamp,
				Namespace: "ml-runs", ServiceAccountName: "runner",
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the answer (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(credential.Token, "eyJ") || got.Status.RequestID == "" {
		t.Errorf("request %q has no token", got.Status.RequestID)
	}
	if life := time.Until(credential.ExpirationTimestamp.Time); life > 15*time.Minute || life < 14*time.Minute {
		t.Errorf("in env stage it lives %s, want 15m", life)
	}
	records := []audit.Record{{
		Event: audit.EventMint, Outcome: audit.OutcomeAllowed, CallerClass: "HubUser", User: "dana",
		Kind: "ClusterTarget", Name: "team-a/gpu", Target: "target:uid-1", Namespace: "ml-runs", ServiceAccount: "runner",
		TTLSeconds: 900, ExpiresAt: credential.ExpirationTimestamp.Time, JTI: "jti-gpu-runner",
		TokenSHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(credential.Token))),
	}}
	if diff := cmp.Diff(records, w.trail.records, ignored); diff != "" {
		t.Errorf("the trail (-want +got):\n%s", diff)
	}
	if w.trail.records[0].RequestID != got.Status.RequestID {
		t.Error("the record and the answer have different request ids")
	}
}

func TestWhoGetsAToken(t *testing.T) {
	pipeline := &caller.Pipeline{Issuer: "https://ci.example", Subject: "repo:acme/ml", Name: "repo:acme/ml", Groups: []string{"ml"}}
	for sentence, tt := range map[string]struct {
		owner registryv1alpha1.TargetOwner
		user  user.Info
		want  string
	}{
		"a member of the owning group":  {registryv1alpha1.TargetOwner{Group: "ml"}, dana, ""},
		"the owning user":               {registryv1alpha1.TargetOwner{User: "mallory"}, mallory, ""},
		"a pipeline by its own name":    {registryv1alpha1.TargetOwner{User: "pipeline:https://ci.example#repo:acme/ml"}, pipeline, ""},
		"a pipeline by its own group":   {registryv1alpha1.TargetOwner{Group: "pipeline:https://ci.example#ml"}, pipeline, ""},
		"not who is in another group":   {registryv1alpha1.TargetOwner{Group: "ml"}, mallory, `NotOwner: target team-a/gpu is owned by "group:ml", which doesn't cover user "mallory"`},
		"not another user":              {registryv1alpha1.TargetOwner{User: "mallory"}, dana, `NotOwner: target team-a/gpu is owned by "user:mallory", which doesn't cover user "dana"`},
		"not whose name is the group's": {registryv1alpha1.TargetOwner{Group: "dana"}, dana, `NotOwner: target team-a/gpu is owned by "group:dana", which doesn't cover user "dana"`},
		"not a pipeline by a name that another issuer could give": {registryv1alpha1.TargetOwner{User: "repo:acme/ml"}, pipeline,
			`NotOwner: target team-a/gpu is owned by "user:repo:acme/ml", which doesn't cover user "pipeline:https://ci.example#repo:acme/ml"`},
		"not a pipeline by the group of hub users": {registryv1alpha1.TargetOwner{Group: "ml"}, pipeline,
			`NotOwner: target team-a/gpu is owned by "group:ml", which doesn't cover user "pipeline:https://ci.example#repo:acme/ml"`},
		"nobody, where no owner is named": {registryv1alpha1.TargetOwner{}, &user.DefaultInfo{}, `NotOwner: target team-a/gpu is owned by "", which doesn't cover user ""`},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t)
			w.row.Spec.Owner = tt.owner
			got, err := w.ask(as(t, tt.user), cellcastv1alpha1.TargetTokenSpec{}, nil)
			if tt.want == "" {
				if err != nil || got.Status.Credential == nil {
					t.Fatalf("got %+v, %v", got, err)
				}
				return
			}
			if err == nil || err.Error() != tt.want || !apierrors.IsForbidden(err) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if w.asked != 0 || len(w.api.Requests()) != 0 {
				t.Error("the credential was read, or the target asked, for somebody else")
			}
		})
	}
}

// sealed is a source that can't be read, and says what to do.
type sealed struct{}

func (sealed) Error() string  { return "GET https://vault.internal/v1/kv: 503" }
func (sealed) Advice() string { return "Vault is sealed." }

const probeIt = "; `kubectl cellcast probe gpu -n team-a` says what is missing, and what mends it"

func TestNoTokenIsMinted(t *testing.T) {
	// What every record of these says, once the row is found and the caller covered.
	base := audit.Record{
		Event: audit.EventMint, Outcome: audit.OutcomeRefused, CallerClass: "HubUser", User: "dana",
		Kind: "ClusterTarget", Name: "team-a/gpu", Target: "target:uid-1", Namespace: "ml-runs", ServiceAccount: "runner",
	}
	for sentence, tt := range map[string]struct {
		arrange func(*world)
		spec    cellcastv1alpha1.TargetTokenSpec
		code    refusal.Code
		message string
		ttl     int64 // in the record, where it came so far
		earlier bool  // refused before it's known whose token it would be
	}{
		"of a target that was never probed": {
			arrange: func(w *world) { w.row.Status = registryv1alpha1.ClusterTargetStatus{} },
			code:    refusal.TargetNotReady,
			message: "target team-a/gpu can't be used now: it hasn't been probed yet" + probeIt,
		},
		"of a target whose spec isn't proven": {
			arrange: func(w *world) { w.row.Generation++ },
			code:    refusal.TargetNotReady,
			message: "target team-a/gpu can't be used now: its spec has changed, and no probe of what it says now has passed yet" + probeIt,
		},
		"of a target whose probe failed": {
			arrange: func(w *world) {
				w.row.Status.State, w.row.Status.Failing = registryv1alpha1.TargetFailed, "Permissions: may not create pods"
			},
			code:    refusal.TargetNotReady,
			message: "target team-a/gpu can't be used now: it is Failed: Permissions: may not create pods" + probeIt,
		},
		"of a target that can't be connected to": {
			arrange: func(w *world) { w.row.Status.State = registryv1alpha1.TargetUnreachable },
			code:    refusal.TargetNotReady,
			message: "target team-a/gpu can't be used now: it is Unreachable: the hub can't connect to its API" + probeIt,
		},
		"of a target that is being deleted": {
			arrange: func(w *world) { w.row.DeletionTimestamp = &metav1.Time{Time: time.Now()} },
			code:    refusal.TargetNotReady,
			message: "target team-a/gpu can't be used: it is being deleted",
		},
		"of a target that is good for agent turns only": {
			arrange: func(w *world) { w.row.Status.Capabilities = w.row.Status.Capabilities[:1] },
			code:    refusal.TargetNotReady,
			message: "target team-a/gpu is Ready, but the registered credential may not create serviceaccounts/token of runner in namespace ml-runs there: grant it that; `kubectl cellcast probe gpu -n team-a` prints the Role, and sees that it's there",
		},
		"that would live longer than the label env says": {
			arrange: func(*world) {}, spec: cellcastv1alpha1.TargetTokenSpec{TTL: "31m"},
			code:    refusal.InvalidRequest,
			message: `31m0s is longer than 30m0s, the most that the hub and the label env="stage" of target team-a/gpu allow; ask for less or leave ttl out`,
		},
		"where the hub's ceiling is under what Kubernetes issues": {
			arrange: func(w *world) { w.Issuer.Ceiling = 5 * time.Minute },
			code:    refusal.MintFailed,
			message: "5m0s is the most that the hub allows, and Kubernetes issues no token for less than 10m0s; ask the platform team to raise the hub's --token-max-ttl",
		},
		"for a ttl that is none": {
			arrange: func(*world) {}, spec: cellcastv1alpha1.TargetTokenSpec{TTL: "soon"}, earlier: true,
			code:    refusal.InvalidRequest,
			message: `"soon" is not a duration; write it like 15m or 1h30m, or leave ttl out`,
		},
		"for a recipient that is none": {
			arrange: func(*world) {}, spec: cellcastv1alpha1.TargetTokenSpec{Recipient: &cellcastv1alpha1.Recipient{KeyType: "RSA"}}, earlier: true,
			code:    refusal.InvalidRequest,
			message: "must be EC: a credential is sealed to an elliptic curve key on P-256 alone",
		},
		"where no client can be made": {
			arrange: func(w *world) { w.refuses = errors.New("secrets \"gpu\" is forbidden") }, ttl: 900,
			code:    refusal.TargetNotReady,
			message: "the registered credential of target team-a/gpu can't be read, or isn't a kubeconfig that cellcast takes; `kubectl cellcast probe gpu -n team-a` says which",
		},
		"where the credential can't be read when it's needed": {
			arrange: func(w *world) { w.custody.gone = errors.New("vault is sealed") }, ttl: 900,
			code:    refusal.TargetNotReady,
			message: "the registered credential of target team-a/gpu can't be read, or isn't a kubeconfig that cellcast takes; `kubectl cellcast probe gpu -n team-a` says which",
		},
		"where there's advice on the credential": {
			arrange: func(w *world) { w.refuses = fmt.Errorf("connect: %w", sealed{}) }, ttl: 900,
			code:    refusal.TargetNotReady,
			message: "the registered credential of target team-a/gpu can't be read. Vault is sealed.",
		},
		"where there's advice on the credential when it's needed": {
			arrange: func(w *world) { w.custody.gone = sealed{} }, ttl: 900,
			code:    refusal.TargetNotReady,
			message: "the registered credential of target team-a/gpu can't be read. Vault is sealed.",
		},
		"where the target refuses the credential": {
			arrange: func(w *world) { w.api.Distrust(true) }, ttl: 900,
			code:    refusal.TargetNotReady,
			message: "the API of target team-a/gpu refuses the registered credential: put a fresh one where its spec.credentialRef says",
		},
		"where the target's Role doesn't let it any more": {
			arrange: func(w *world) {
				w.row.Spec.ServiceAccountName = ""
				w.api.AddServiceAccount("ml-runs", "default")
			}, ttl: 900,
			code:    refusal.MintFailed,
			message: "the registered credential of target team-a/gpu may not create serviceaccounts/token for ml-runs/default there: its Role must let it; `kubectl cellcast probe gpu -n team-a` prints what is missing",
		},
		"of a ServiceAccount that isn't there": {
			arrange: func(w *world) {
				w.row.Spec.ServiceAccountName = "missing"
				w.api.AllowMint("ml-runs", "missing")
			}, ttl: 900,
			code:    refusal.MintFailed,
			message: "target team-a/gpu has no ServiceAccount ml-runs/missing: create it there, or correct spec.serviceAccountName",
		},
		"where the target's admission is against it": {
			arrange: func(w *world) {
				w.api.Answer(&celltest.Canned{Code: http.StatusUnprocessableEntity, Header: http.Header{"Content-Type": {"application/json"}},
					Body: `{"kind":"Status","apiVersion":"v1","status":"Failure","code":422,"message":"the target's own words"}`})
			}, ttl: 900,
			code:    refusal.MintFailed,
			message: "the API of target team-a/gpu refused a token of 15m0s for ml-runs/runner: check its admission policies on serviceaccounts/token",
		},
		"where the target answers nonsense": {
			arrange: func(w *world) { w.api.Answer(&celltest.Canned{Code: http.StatusTeapot, Body: "short and stout"}) }, ttl: 900,
			code:    refusal.MintFailed,
			message: "the API of target team-a/gpu answered with something that isn't understood",
		},
		"where the target has no time": {
			arrange: func(w *world) { w.api.Answer(&celltest.Canned{Code: http.StatusServiceUnavailable, Body: "later"}) }, ttl: 900,
			code:    refusal.MintUnavailable,
			message: "the API of target team-a/gpu can't issue a token now",
		},
		"where the target hangs up": {
			arrange: func(w *world) { w.api.Down(true) }, ttl: 900,
			code:    refusal.MintUnavailable,
			message: "the API of target team-a/gpu can't be reached",
		},
		"where what came back is somebody else's token": {
			arrange: func(w *world) { w.api.Tamper(func(c *celltest.Claims) { c.Subject = celltest.HubSubject }) }, ttl: 900,
			code:    refusal.MintFailed,
			message: "cell target:uid-1 issued a token that isn't for ml-runs/runner; it was thrown away",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t)
			tt.arrange(w)
			answer, err := w.ask(as(t, dana), tt.spec, nil)
			got, ok := refusal.FromStatus(err)
			if !ok || got.Code != tt.code || got.Message != tt.message || answer != nil {
				t.Fatalf("got  %v\nwant %s: %s", err, tt.code, tt.message)
			}
			want := base
			want.Refusal, want.Message, want.TTLSeconds = tt.code, tt.message, tt.ttl
			if _, account := (&place{row: w.row}).account(); !tt.earlier {
				want.ServiceAccount = account
			} else {
				want.Target, want.Namespace, want.ServiceAccount = "", "", ""
			}
			if diff := cmp.Diff([]audit.Record{want}, w.trail.records, ignored); diff != "" {
				t.Errorf("the trail (-want +got):\n%s", diff)
			}
		})
	}
}

func TestATargetThatIsNotThere(t *testing.T) {
	w := newWorld(t)
	delete(w.rows, "team-a/gpu")
	_, err := w.ask(as(t, dana), cellcastv1alpha1.TargetTokenSpec{}, nil)
	if !apierrors.IsNotFound(err) || err.Error() != `clustertargets.cellcast.io "gpu" not found` {
		t.Errorf("got %v", err)
	}
	want := []audit.Record{{
		Event: audit.EventMint, Outcome: audit.OutcomeRefused, Message: "not found",
		CallerClass: "HubUser", User: "dana", Kind: "ClusterTarget", Name: "team-a/gpu",
	}}
	if diff := cmp.Diff(want, w.trail.records, ignored); diff != "" {
		t.Errorf("the trail (-want +got):\n%s", diff)
	}
}

func TestAQuestionNamesOneTarget(t *testing.T) {
	w := newWorld(t)
	_, err := w.Create(as(t, dana), "gpu", &cellcastv1alpha1.TargetToken{ObjectMeta: metav1.ObjectMeta{Name: "cpu"}}, nil, nil)
	if got, ok := refusal.FromStatus(err); !ok || got.Code != refusal.InvalidRequest || got.Field != "metadata.name" {
		t.Errorf("got %v", err)
	}
}

func TestADryRunOfATokenOnlyChecks(t *testing.T) {
	dry := &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	w := newWorld(t)
	got, err := w.ask(as(t, dana), cellcastv1alpha1.TargetTokenSpec{TTL: "20m"}, dry)
	if err != nil {
		t.Fatal(err)
	}
	target := cellcastv1alpha1.TargetReference{Namespace: "team-a", Name: "gpu", Address: "target:uid-1"}
	if diff := cmp.Diff(target, got.Status.Target); diff != "" || got.Status.Credential != nil {
		t.Errorf("the answer has a credential, or (-want +got):\n%s", diff)
	}
	if w.asked != 0 || len(w.api.Requests()) != 0 {
		t.Error("a dry run read the credential, or asked the target")
	}
	if _, err := w.ask(as(t, mallory), cellcastv1alpha1.TargetTokenSpec{}, dry); !apierrors.IsForbidden(err) {
		t.Errorf("a dry run lets in whom the owner doesn't cover: %v", err)
	}
	want := []audit.Record{{
		Event: audit.EventMint, Outcome: audit.OutcomeAllowed, DryRun: true, CallerClass: "HubUser", User: "dana",
		Kind: "ClusterTarget", Name: "team-a/gpu", Target: "target:uid-1", Namespace: "ml-runs", ServiceAccount: "runner", TTLSeconds: 1200,
	}, {
		Event: audit.EventMint, Outcome: audit.OutcomeRefused, DryRun: true, CallerClass: "HubUser", User: "mallory",
		Kind: "ClusterTarget", Name: "team-a/gpu", Target: "target:uid-1",
		Refusal: refusal.NotOwner, Message: `target team-a/gpu is owned by "group:ml", which doesn't cover user "mallory"`,
	}}
	if diff := cmp.Diff(want, w.trail.records, ignored); diff != "" {
		t.Errorf("the trail (-want +got):\n%s", diff)
	}
}

// warnings collects what a caller is warned of.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

func TestATokenTravelsSealedToWhoSendsAKey(t *testing.T) {
	key, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	var warned warnings
	got, err := w.ask(warning.WithWarningRecorder(as(t, dana), &warned), cellcastv1alpha1.TargetTokenSpec{Recipient: key.Recipient()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := key.Open(got.Status.Credential.SealedToken)
	if err != nil || !strings.HasPrefix(token, "eyJ") || got.Status.Credential.Token != "" {
		t.Errorf("sealed %q, in the clear %q: %v", got.Status.Credential.SealedToken, got.Status.Credential.Token, err)
	}
	if len(warned) != 0 || len(w.trail.records) != 1 || !w.trail.records[0].Sealed {
		t.Errorf("warned of %v; the trail has %+v", warned, w.trail.records)
	}
	if _, err := w.ask(warning.WithWarningRecorder(as(t, dana), &warned), cellcastv1alpha1.TargetTokenSpec{}, nil); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(warned, func(text string) bool { return strings.Contains(text, "unsealed") }) {
		t.Errorf("a token in the clear comes with %q", warned)
	}
}

func TestATokenThatIsInNoTrailGoesToNobody(t *testing.T) {
	w := newWorld(t)
	w.trail.lost = errors.New("no space left on device")
	got, err := w.ask(as(t, dana), cellcastv1alpha1.TargetTokenSpec{}, nil)
	const want = "MintUnavailable: the hub can't write its audit trail, and issues nothing that isn't in it"
	if got != nil || err == nil || err.Error() != want {
		t.Errorf("got  %v, %v\nwant %s", got, err, want)
	}
}

func TestARequestThatEndedWhileTheCredentialWasReadIsNoFaultOfTheTarget(t *testing.T) {
	w := newWorld(t)
	w.refuses = context.Canceled
	ctx, cancel := context.WithCancel(as(t, dana))
	cancel()
	_, err := w.ask(ctx, cellcastv1alpha1.TargetTokenSpec{}, nil)
	if got, ok := refusal.FromStatus(err); !ok || got.Code != refusal.MintUnavailable {
		t.Errorf("got %v", err)
	}
}
