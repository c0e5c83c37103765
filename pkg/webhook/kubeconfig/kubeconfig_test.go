package kubeconfig_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	closed "cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/kubeconfig/address"
	"cellcast.io/cellcast/pkg/webhook"
	"cellcast.io/cellcast/pkg/webhook/kubeconfig"
	"cellcast.io/cellcast/pkg/webhook/webhooktest"
)

// refusals records what was audited.
type refusals []webhook.CredentialRefusal

func (r *refusals) CredentialRefused(refusal webhook.CredentialRefusal) { *r = append(*r, refusal) }

// secret is a Secret with this data, as the API server hands it to a webhook.
func secret(t *testing.T, data map[string]string, change ...func(*corev1.Secret)) []byte {
	t.Helper()
	object := corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "payments", Namespace: "default"},
		Type:       "cellcast.io/kubeconfig", Data: map[string][]byte{},
	}
	for key, value := range data {
		object.Data[key] = []byte(value)
	}
	for _, c := range change {
		c(&object)
	}
	return raw(t, &object)
}

func raw(t *testing.T, object *corev1.Secret) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// received is the row after the API server moved stringData to where it's kept.
func received(t *testing.T, row []byte) []byte {
	t.Helper()
	var object corev1.Secret
	if err := json.Unmarshal(row, &object); err != nil {
		t.Fatal(err)
	}
	object.Data = map[string][]byte{}
	for key, value := range object.StringData {
		object.Data[key] = []byte(value)
	}
	object.StringData = nil
	return raw(t, &object)
}

func TestRows(t *testing.T) {
	for _, row := range webhooktest.Rows(t, "testdata") {
		t.Run(row.Name, func(t *testing.T) {
			var audited refusals
			handler := kubeconfig.NewHandler(address.Policy{}, &audited)
			resp := handler.Handle(t.Context(), webhooktest.Create(t, received(t, row.JSON)))
			answer := webhooktest.Answer(t, resp)
			if len(row.Refused) == 0 {
				if !resp.Allowed || len(resp.Warnings) > 0 || len(audited) > 0 {
					t.Errorf("refused, audited or warned of: %s", answer)
				}
				return
			}
			if resp.Allowed || resp.Result.Code != http.StatusUnprocessableEntity || resp.Result.Reason != metav1.StatusReasonInvalid {
				t.Fatalf("not refused as invalid: %s", answer)
			}
			var fields []string
			for _, cause := range resp.Result.Details.Causes {
				fields = append(fields, cause.Field)
			}
			if diff := cmp.Diff(row.Refused, fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%s", diff, answer)
			}
			if len(audited) != 1 {
				t.Fatalf("audited %d times", len(audited))
			}
			if text := answer + strings.Join(audited[0].Fields, " "); strings.Contains(text, row.Secret) {
				t.Errorf("the answer or the audit quotes %s: %s", row.Secret, text)
			}
		})
	}
}

// What the hub refuses when it reads a kubeconfig is refused when it's written,
// and nothing else is.
func TestTheRulesAreThoseOfTheParser(t *testing.T) {
	files, err := filepath.Glob("../../kubeconfig/testdata/*.*")
	if err != nil || len(files) < 200 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	handler := kubeconfig.NewHandler(address.Policy{}, nil)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		resp := handler.Handle(t.Context(), webhooktest.Create(t, secret(t, map[string]string{"kubeconfig": string(text)})))
		if _, err := closed.ParsePermitted(text, address.Policy{}); resp.Allowed != (err == nil) {
			t.Errorf("%s: allowed %v, and the parser says %v", file, resp.Allowed, err)
		}
		if answer := webhooktest.Answer(t, resp); strings.Contains(strings.ToLower(answer), "canary") {
			t.Errorf("%s: the answer quotes the file: %s", file, answer)
		}
	}
}

func plain(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../kubeconfig/testdata/good.plain.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAnAnswerNamesTheLineAndTheField(t *testing.T) {
	exec := strings.Replace(plain(t), "token: canary-token", "exec: {command: canary}", 1)
	loopback := strings.Replace(plain(t), "api.canary.example", "127.0.0.1", 1)
	for sentence, tc := range map[string]struct {
		data map[string]string
		want []string
	}{
		"a feature that stays outside": {map[string]string{"kubeconfig": exec}, []string{
			"data[kubeconfig]: Invalid value: line 12, users[0].user.exec: exec names a program that gets the token; " +
				"put a ServiceAccount's long-lived token into users[0].user.token: cellcast target register makes one",
		}},
		"an address that the hub doesn't connect to": {map[string]string{"kubeconfig": loopback}, []string{
			"data[kubeconfig]: Invalid value: line 7, clusters[0].cluster.server: the hub doesn't connect to this address; " +
				"use the address that other machines reach the API server by",
		}},
		"another key": {map[string]string{"config": plain(t)}, []string{
			"data: Forbidden: must have the key kubeconfig and no other",
			"data[kubeconfig]: Required value: the kubeconfig is missing",
		}},
		"no key": {nil, []string{"data[kubeconfig]: Required value: the kubeconfig is missing"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			resp := kubeconfig.NewHandler(address.Policy{}, nil).Handle(t.Context(), webhooktest.Create(t, secret(t, tc.data)))
			if diff := cmp.Diff(tc.want, webhooktest.Causes(resp)); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAddressThatTheOperatorAllowsIsTaken(t *testing.T) {
	allowed, err := address.New(address.Options{Allow: []string{"127.0.0.0/8"}})
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]string{"kubeconfig": strings.Replace(plain(t), "api.canary.example", "127.0.0.1", 1)}
	if resp := kubeconfig.NewHandler(allowed, nil).Handle(t.Context(), webhooktest.Create(t, secret(t, data))); !resp.Allowed {
		t.Errorf("got %s", webhooktest.Answer(t, resp))
	}
}

func TestTheCopyOfKubectlApplyIsWarnedOf(t *testing.T) {
	applied := secret(t, map[string]string{"kubeconfig": plain(t)}, func(s *corev1.Secret) {
		s.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"kind":"Secret","data":{"kubeconfig":"Y2FuYXJ5"}}`}
	})
	resp := kubeconfig.NewHandler(address.Policy{}, nil).Handle(t.Context(), webhooktest.Update(t, applied, applied))
	want := []string{"metadata.annotations[kubectl.kubernetes.io/last-applied-configuration] holds a second copy of the kubeconfig: " +
		"kubectl apply keeps one there; kubectl create and kubectl apply --server-side don't"}
	if diff := cmp.Diff(want, resp.Warnings); diff != "" || !resp.Allowed {
		t.Errorf("allowed %v, warnings (-want +got):\n%s", resp.Allowed, diff)
	}
}

func TestARefusalIsAuditedByFieldsAlone(t *testing.T) {
	var got refusals
	handler := kubeconfig.NewHandler(address.Policy{}, &got)
	twice := strings.Replace(plain(t), "token: canary-token", "username: canary\n    password: canary", 1)
	handler.Handle(t.Context(), webhooktest.Create(t, secret(t, map[string]string{"kubeconfig": twice, "canary": "x"})))
	handler.Handle(t.Context(), webhooktest.Create(t, secret(t, map[string]string{"kubeconfig": plain(t)})))
	want := refusals{{RequestID: "request-1", User: "operator", Kind: "Secret", Name: "payments", Fields: []string{"data", "data[kubeconfig]"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("audited (-want +got):\n%s", diff)
	}
}

func TestWhatIsNoSecretIsRefusedWithoutQuotingIt(t *testing.T) {
	req := webhooktest.Create(t, secret(t, nil))
	req.Object.Raw = []byte(`{"apiVersion":"v1","kind":"Secret","type":"cellcast.io/kubeconfig","metadata":{"creationTimestamp":"c4nary"}}`)
	resp := kubeconfig.NewHandler(address.Policy{}, nil).Handle(t.Context(), req)
	if resp.Allowed || resp.Result.Code != http.StatusBadRequest || strings.Contains(webhooktest.Answer(t, resp), "c4nary") {
		t.Errorf("got %s", webhooktest.Answer(t, resp))
	}
}
