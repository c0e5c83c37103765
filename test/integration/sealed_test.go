package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/pkg/seal"
)

// sealed asks with a key and returns the token that came back, opened.
func sealed(t *testing.T, client versioned.Interface, spec cellcastv1alpha1.PlacementSpec) string {
	t.Helper()
	key, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	spec.Recipient = key.Recipient()
	answer, err := place(t.Context(), client, &cellcastv1alpha1.Placement{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	if answer.Status.Credential == nil || answer.Status.Credential.Token != "" {
		t.Fatalf("the credential isn't sealed: %+v", answer.Status.Cell)
	}
	token, err := key.Open(answer.Status.Credential.SealedToken)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// shows reports whether a part of the token is in what was recorded.
func shows(recorded, token string) bool {
	for _, part := range strings.Split(token, ".")[1:] {
		if strings.Contains(recorded, part) {
			return true
		}
	}
	return false
}

// Three that see the answer: a proxy that terminates TLS before the direct
// door, the wire between the hub's aggregator and the hub, and the audit log of
// the hub's own API server at RequestResponse. Each of them shows an unsealed
// token, so that it's known to look in the right place, and no sealed one.
func TestWhoeverRecordsASealedAnswerHasNoToken(t *testing.T) {
	require(t)
	clients := doors(t, nil)

	proxy := record(t)
	token, err := hub.Token(unique(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	config := hub.Direct(token)
	config.Host = proxy.url()
	behind, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	aggregator := record(t, pair(t, "front-proxy-client"))
	through(t, aggregator)

	for name, place := range map[string]struct {
		client   versioned.Interface
		recorded func() string
	}{
		"a proxy before the direct door":  {behind, proxy.recorded},
		"the aggregator":                  {clients["aggregated"], aggregator.recorded},
		"the hub's audit log, direct":     {clients["direct"], func() string { return read(t, filepath.Join(hub.Dir, "logs", hubAuditLog)) }},
		"the hub's audit log, aggregated": {clients["aggregated"], func() string { return read(t, filepath.Join(hub.Dir, "logs", hubAuditLog)) }},
	} {
		t.Run(name, func(t *testing.T) {
			if token := sealed(t, place.client, ask("payments/api").Spec); shows(place.recorded(), token) {
				t.Error("the token is there")
			}
			clear, err := placeInTheClear(t, place.client)
			if err != nil {
				t.Fatal(err)
			}
			if !shows(place.recorded(), clear) {
				t.Error("an unsealed token isn't there: the test looks in the wrong place")
			}
		})
	}
}

// A token for a named cell travels as a placement's does.
func TestWhoeverRecordsASealedTokenForACellHasNone(t *testing.T) {
	require(t)
	client := doors(t, func(spec *registryv1alpha1.PlacementPolicySpec) { spec.AllowCellSelection = true })["direct"]
	key, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	answer := &cellcastv1alpha1.CellToken{}
	if err := client.CellcastV1alpha1().RESTClient().Post().Resource("cells").Name("prod-eu").SubResource("token").
		Body(&cellcastv1alpha1.CellToken{Spec: cellcastv1alpha1.CellTokenSpec{Workload: "payments/api", Recipient: key.Recipient()}}).
		MaxRetries(0).Do(t.Context()).Into(answer); err != nil {
		t.Fatal(err)
	}
	token, err := key.Open(answer.Status.Credential.SealedToken)
	if err != nil || answer.Status.Credential.Token != "" {
		t.Fatalf("it isn't sealed: %v", err)
	}
	if shows(read(t, filepath.Join(hub.Dir, "logs", hubAuditLog)), token) {
		t.Error("the token is in the hub's audit log")
	}
	clear, err := remint(t.Context(), client, "prod-eu")
	if err != nil {
		t.Fatal(err)
	}
	if !shows(read(t, filepath.Join(hub.Dir, "logs", hubAuditLog)), clear.Status.Credential.Token) {
		t.Error("an unsealed token isn't there: the test looks in the wrong place")
	}
}

func placeInTheClear(t *testing.T, client versioned.Interface) (string, error) {
	answer, err := place(t.Context(), client, ask("payments/api"))
	if err != nil {
		return "", err
	}
	return answer.Status.Credential.Token, nil
}

// through sends the hub's aggregator through the recorder until the test ends.
func through(t *testing.T, r *recorder) {
	t.Helper()
	client, err := dynamic.NewForConfig(hub.Hub.Admin.Config())
	if err != nil {
		t.Fatal(err)
	}
	services := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	was, err := services.Get(t.Context(), "v1alpha1.cellcast.io", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before, _, err := unstructured.NestedInt64(was.Object, "spec", "service", "port")
	if err != nil {
		t.Fatal(err)
	}
	point := func(ctx context.Context, port int64) {
		patch := fmt.Sprintf(`{"spec":{"service":{"port":%d}}}`, port)
		if _, err := services.Patch(ctx, was.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
	// passes lists the cells, and says by which way the question came.
	passes := func(want bool) func(context.Context) error {
		return func(ctx context.Context) error {
			had := len(r.recorded())
			if _, err := hub.Admin.CellcastV1alpha1().Cells().List(ctx, metav1.ListOptions{}); err != nil {
				return err
			}
			if passed := len(r.recorded()) > had; passed != want {
				return fmt.Errorf("through the recorder: %t", passed)
			}
			return nil
		}
	}
	t.Cleanup(func() {
		point(context.Background(), before)
		if err := hub.Eventually(context.Background(), "the aggregator goes straight to the hub", passes(false)); err != nil {
			t.Error(err)
		}
	})
	point(t.Context(), int64(r.port()))
	eventually(t, "the aggregator goes through the recorder", passes(true))
}

func TestAnUnsealedRequestGetsAWarning(t *testing.T) {
	require(t)
	for door, client := range doors(t, nil) {
		t.Run(door, func(t *testing.T) {
			key, err := seal.NewKey()
			if err != nil {
				t.Fatal(err)
			}
			for recipient, warned := range map[*cellcastv1alpha1.Recipient]bool{nil: true, key.Recipient(): false} {
				question := ask("payments/api")
				question.Spec.Recipient = recipient
				result := client.CellcastV1alpha1().RESTClient().Post().Resource("placements").Body(question).MaxRetries(0).Do(t.Context())
				if err := result.Error(); err != nil {
					t.Fatal(err)
				}
				var texts []string
				for _, w := range result.Warnings() {
					texts = append(texts, w.Text)
				}
				if got := strings.Contains(strings.Join(texts, "\n"), "spec.recipient"); got != warned {
					t.Errorf("with recipient %v the warnings are %q", recipient, texts)
				}
			}
		})
	}
}

// A private key in the request is a mistake that must not be taken for a key,
// nor end in a log.
func TestARecipientIsAPublicKeyOnP256(t *testing.T) {
	require(t)
	client := doors(t, nil)["direct"]
	for sentence, tt := range map[string]struct{ body, want string }{
		"a private key": {`{"kty":"EC","crv":"P-256","x":"AA","y":"AA","d":"c2VjcmV0LXNjYWxhcg"}`, `unknown field "spec.recipient.d"`},
		"RSA":           {`{"kty":"RSA","crv":"P-256","x":"AA","y":"AA"}`, "spec.recipient.kty"},
		"off the curve": {`{"kty":"EC","crv":"P-256","x":"` + strings.Repeat("A", 43) + `","y":"` + strings.Repeat("A", 43) + `"}`, "is no point of P-256"},
	} {
		t.Run(sentence, func(t *testing.T) {
			body := `{"apiVersion":"cellcast.io/v1alpha1","kind":"Placement","spec":{"workload":"payments/api","recipient":` + tt.body + `}}`
			err := client.CellcastV1alpha1().RESTClient().Post().Resource("placements").
				SetHeader("Content-Type", "application/json").Body([]byte(body)).MaxRetries(0).Do(t.Context()).Error()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "c2VjcmV0LXNjYWxhcg") {
				t.Errorf("the answer repeats the private key: %v", err)
			}
		})
	}
	if strings.Contains(read(t, hub.Hub.Server.LogFile()), "c2VjcmV0LXNjYWxhcg") {
		t.Error("the private key is in the hub's log")
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
