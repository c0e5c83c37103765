package registration_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"cellcast.io/cellcast/pkg/cli/registration"
	"cellcast.io/cellcast/pkg/revocation"
)

// secretName is the name of the Secret of some revocable credential.
var secretName = revocation.SecretName(revocation.Owner{User: "ci"}, "bm9uY2Ugb2YgYSBjYWxsZXI")

// secretOf is the Secret of a revocable credential of ten minutes, changed.
func secretOf(change func(*corev1.Secret)) corev1.Secret {
	s := corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "payments-ci", Name: secretName, Labels: map[string]string{revocation.LabelSeconds: "600"}},
		Type:       corev1.SecretTypeOpaque,
	}
	if change != nil {
		change(&s)
	}
	return s
}

// labelled changes the time of a Secret.
func labelled(seconds string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Labels[revocation.LabelSeconds] = seconds }
}

func TestPolicyOnTheHubsSecrets(t *testing.T) {
	for name, test := range map[string]struct {
		request request
		want    string // the message, or empty where it's allowed
	}{
		"allows one in a revocable namespace": {
			request{operation: "CREATE", namespace: "payments-ci", object: secretOf(nil)}, ""},
		"allows the deletion of one": {
			request{operation: "DELETE", namespace: "web-ci", oldObject: secretOf(nil)}, ""},
		"leaves users of the cell's own alone": {
			request{operation: "DELETE", user: "admin", namespace: "payments", oldObject: corev1.Secret{}}, ""},
		"forbids one elsewhere": {
			request{operation: "CREATE", namespace: "payments", object: secretOf(nil)},
			"the hub may not touch a Secret in payments: register the cell with it as revocable"},
		"forbids a deletion elsewhere": {
			request{operation: "DELETE", namespace: "kube-system", oldObject: secretOf(nil)},
			"the hub may not touch a Secret in kube-system: register the cell with it as revocable"},
		"bounds every user of the hub's issuer": {
			request{operation: "UPDATE", user: "cellcast-hub:someone", namespace: "web", object: secretOf(nil), oldObject: secretOf(nil)},
			"the hub may not touch a Secret in web: register the cell with it as revocable"},
		"forbids the deletion of a Secret without labels": {
			request{operation: "DELETE", namespace: "payments-ci", oldObject: corev1.Secret{}},
			"the hub may delete no Secret without the label cellcast.io/revoke-after-seconds"},
		"forbids the deletion of a Secret with another label": {
			request{operation: "DELETE", namespace: "payments-ci", oldObject: corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}},
			"the hub may delete no Secret without the label cellcast.io/revoke-after-seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := admit(t, fullPolicy(t, "cellcast-hub-secrets"), test.request); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestPolicyOnTheSecretsOfARevocableNamespace(t *testing.T) {
	const (
		empty     = "hold nothing"
		unadorned = "have no annotation, finalizer or owner"
		timed     = "have the label cellcast.io/revoke-after-seconds alone, of 60 to 1800 seconds"
	)
	for name, test := range map[string]struct {
		change func(*corev1.Secret)
		must   string // what the message says, or empty where it's allowed
	}{
		"allows the Secret of a revocable credential": {nil, ""},
		"allows the least time":                       {labelled("60"), ""},
		"allows the most time":                        {labelled("1800"), ""},
		"forbids one that becomes a credential":       {func(s *corev1.Secret) { s.Type = corev1.SecretTypeServiceAccountToken }, "be of type Opaque"},
		"forbids data":                                {func(s *corev1.Secret) { s.Data = map[string][]byte{"password": []byte("x")} }, empty},
		"forbids data in the clear":                   {func(s *corev1.Secret) { s.StringData = map[string]string{"password": "x"} }, empty},
		"forbids one that says whether it can change": {func(s *corev1.Secret) { s.Immutable = ptr.To(false) }, empty},
		"forbids a name that someone chose":           {func(s *corev1.Secret) { s.Name = "cellcast-registry" }, "have a name of cellcast- and 64 hexadecimal digits"},
		"forbids a name that goes on":                 {func(s *corev1.Secret) { s.Name += "0" }, "have a name of cellcast- and 64 hexadecimal digits"},
		"forbids annotations":                         {func(s *corev1.Secret) { s.Annotations = map[string]string{"note": "x"} }, unadorned},
		"forbids finalizers":                          {func(s *corev1.Secret) { s.Finalizers = []string{"acme.example.com/hold"} }, unadorned},
		"forbids owners":                              {func(s *corev1.Secret) { s.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, unadorned},
		"forbids one without labels":                  {func(s *corev1.Secret) { s.Labels = nil }, timed},
		"forbids another label":                       {func(s *corev1.Secret) { s.Labels = map[string]string{"app": "web"} }, timed},
		"forbids another label beside it":             {func(s *corev1.Secret) { s.Labels["app"] = "web" }, timed},
		"forbids too short a time":                    {labelled("59"), timed},
		"forbids a time that outlives every token":    {labelled("1801"), timed},
		"forbids a time that is no number":            {labelled("10m"), timed},
		"forbids a time with zeros before it":         {labelled("0600"), timed},
		"forbids a time that no integer holds":        {labelled("99999999999999999999"), timed},
	} {
		t.Run(name, func(t *testing.T) {
			want := ""
			if test.must != "" {
				want = "a Secret in payments-ci must " + test.must + ": the namespace is for revocable credentials alone"
			}
			for _, user := range []string{hubUser, "admin"} {
				got := admit(t, fullPolicy(t, "cellcast-revocable-secrets"),
					request{operation: "CREATE", user: user, namespace: "payments-ci", object: secretOf(test.change)})
				if got != want {
					t.Errorf("as %s: got %q, want %q", user, got, want)
				}
			}
		})
	}
}

func TestASecretOfARevocableNamespaceKeepsItsTime(t *testing.T) {
	const refusal = "a Secret in payments-ci must keep the time that it was created with: the namespace is for revocable credentials alone"
	for name, test := range map[string]struct {
		before corev1.Secret
		want   string
	}{
		"allows what changes nothing, as a rewrite of the store does": {secretOf(nil), ""},
		"allows a finalizer to be taken away":                         {secretOf(func(s *corev1.Secret) { s.Finalizers = []string{"foregroundDeletion"} }), ""},
		"forbids another time":                                        {secretOf(labelled("60")), refusal},
		"forbids a time for one that had none":                        {secretOf(func(s *corev1.Secret) { s.Labels = nil }), refusal},
	} {
		t.Run(name, func(t *testing.T) {
			got := admit(t, fullPolicy(t, "cellcast-revocable-secrets"),
				request{operation: "UPDATE", user: "admin", namespace: "payments-ci", object: secretOf(nil), oldObject: test.before})
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The policy's own words are those of the package that hub and agent share.
func TestPolicyAllowsWhatTheHubMakes(t *testing.T) {
	policy := policyOf(t, longLived(t), "cellcast-revocable-secrets")
	for _, ttl := range []time.Duration{revocation.MinTTL, 10 * time.Minute, revocation.MaxTTL} {
		label := revocation.Label(ttl)
		if _, err := strconv.Atoi(label); err != nil {
			t.Fatal(err)
		}
		if got := admit(t, policy, request{operation: "CREATE", namespace: "web-ci", object: secretOf(labelled(label))}); got != "" {
			t.Errorf("%s: %s", ttl, got)
		}
	}
	// The agent takes a longer time for none, and would end the credential at once.
	longer := revocation.Label(revocation.MaxTTL + time.Second)
	const want = "a Secret in web-ci must have the label cellcast.io/revoke-after-seconds alone, of 60 to 86400 seconds: the namespace is for revocable credentials alone"
	if got := admit(t, policy, request{operation: "CREATE", namespace: "web-ci", object: secretOf(labelled(longer))}); got != want {
		t.Errorf("more than a day: got %q, want %q", got, want)
	}
}

// longLived is the registration of a cell whose tokens may live for a week.
func longLived(t *testing.T) registration.Registration {
	t.Helper()
	cell := full(t)
	cell.MaxTTL = 7 * 24 * time.Hour
	r, err := registration.New(cell)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEachRevocableNamespaceHasItsQuota(t *testing.T) {
	for name, test := range map[string]struct {
		quota int64
		want  string
	}{
		"the default": {0, "5k"},
		"one's own":   {250, "250"},
		"the most":    {100_000, "100k"},
	} {
		t.Run(name, func(t *testing.T) {
			cell := full(t)
			cell.RevocableQuota = test.quota
			r, err := registration.New(cell)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, object := range r.OnCell() {
				if quota, ok := object.(*corev1.ResourceQuota); ok {
					for what, most := range quota.Spec.Hard {
						got[quota.Namespace+"/"+quota.Name+" "+string(what)] = most.String()
					}
				}
			}
			want := map[string]string{
				"payments-ci/cellcast-revocable-secrets count/secrets": test.want,
				"web-ci/cellcast-revocable-secrets count/secrets":      test.want,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("quotas (-want +got):\n%s", diff)
			}
		})
	}
}
