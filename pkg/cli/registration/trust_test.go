package registration_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverinstall "k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/apis/audit"
	auditinstall "k8s.io/apiserver/pkg/apis/audit/install"
	auditvalidation "k8s.io/apiserver/pkg/apis/audit/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"cellcast.io/cellcast/pkg/cli/registration"
)

// The types of the two files are our own, so that the client needn't link the
// API server: here the API server reads them.

func TestAnAPIServerAcceptsTheAuthenticationConfiguration(t *testing.T) {
	for name, cell := range map[string]registration.Cell{"full": full(t), "least": least()} {
		t.Run(name, func(t *testing.T) {
			r, err := registration.New(cell)
			if err != nil {
				t.Fatal(err)
			}
			config := decode(t, apiserverinstall.Install, marshal(t, r.Authentication())).(*apiserver.AuthenticationConfiguration)
			compiler := authenticationcel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
			if errs := validation.ValidateAuthenticationConfiguration(compiler, config, []string{cell.Issuer}); len(errs) > 0 {
				t.Errorf("refused: %v", errs.ToAggregate())
			}
		})
	}
}

func TestAnAPIServerAcceptsTheAuditPolicy(t *testing.T) {
	r, err := registration.New(least())
	if err != nil {
		t.Fatal(err)
	}
	policy := decode(t, auditinstall.Install, marshal(t, r.Audit())).(*audit.Policy)
	if errs := auditvalidation.ValidatePolicy(policy); len(errs) > 0 {
		t.Errorf("refused: %v", errs.ToAggregate())
	}
}

func TestAnIssuerThatPublishesItsOwnDocumentNeedsNoDiscoveryURL(t *testing.T) {
	for _, mirror := range []string{"", "https://hub.example.com", "https://hub.example.com/"} {
		hub := registration.Hub{Issuer: "https://hub.example.com", MirrorURL: mirror}
		if got := hub.Authentication("cellcast:cell:eu-1").JWT[0].Issuer.DiscoveryURL; got != "" {
			t.Errorf("mirror %q: discoveryURL is %q, want none", mirror, got)
		}
	}
}

func decode(t *testing.T, install func(*runtime.Scheme), data []byte) runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	object, err := runtime.Decode(codecs.UniversalDecoder(), data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return object
}
