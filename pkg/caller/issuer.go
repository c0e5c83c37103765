package caller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"

	"cellcast.io/cellcast/pkg/keyset"
)

// trustedIssuer is one entry of the configuration, ready to check tokens.
type trustedIssuer struct {
	expect expectation
	source source
	keys   *keyset.Set
	// mapper is Kubernetes' own JWT authenticator. It checks the token once
	// more, and applies the entry's mappings and rules.
	mapper authenticator.Token
}

// source is all that an issuer's keys depend on.
type source struct {
	issuer, discoveryURL, certificateAuthority string
}

// newTrustedIssuer makes an entry ready. Known keys are taken over where their
// source is the same.
func newTrustedIssuer(ctx context.Context, entry apiserver.JWTAuthenticator, known map[source]*keyset.Set, compiler authenticationcel.Compiler, times keyset.Options) (*trustedIssuer, error) {
	t := &trustedIssuer{
		expect: expectation{issuer: entry.Issuer.URL, audiences: entry.Issuer.Audiences},
		source: source{entry.Issuer.URL, entry.Issuer.DiscoveryURL, entry.Issuer.CertificateAuthority},
	}
	if t.keys = known[t.source]; t.keys == nil {
		client, err := keyset.Client([]byte(entry.Issuer.CertificateAuthority))
		if err != nil {
			return nil, err
		}
		t.keys = keyset.New(keyset.Discovery(client, t.source.issuer, t.source.discoveryURL), times)
	}
	// The key set has read the discovery document, and Kubernetes' authenticator
	// takes either a key set or a discovery URL. It's left no way to the network.
	entry.Issuer.DiscoveryURL = ""
	mapper, err := oidc.New(ctx, oidc.Options{
		JWTAuthenticator:     entry,
		KeySet:               t.keys,
		Client:               &http.Client{Transport: noNetwork{}},
		Compiler:             compiler,
		SupportedSigningAlgs: oidc.AllValidSigningAlgorithms(),
	})
	if err != nil {
		return nil, fmt.Errorf("issuer %q: %w", t.source.issuer, err)
	}
	t.mapper = mapper
	return t, nil
}

// authenticate returns the pipeline that a token of this issuer stands for.
func (t *trustedIssuer) authenticate(ctx context.Context, token string, now func() time.Time) (*Pipeline, *Failure) {
	claims, failure := t.expect.verify(ctx, t.keys, token, now)
	if failure != nil {
		return nil, failure
	}
	response, ok, err := t.mapper.AuthenticateToken(ctx, token)
	if err != nil {
		return nil, fail(ReasonClaims, "the issuer's configuration refuses the token: %w", err)
	}
	if !ok {
		return nil, fail(ReasonMalformed, "the issuer is ambiguous: claims that differ in case alone")
	}
	if failure := checkNames(response.User); failure != nil {
		return nil, failure
	}
	return &Pipeline{
		Issuer:  t.expect.issuer,
		Subject: claims.Subject,
		Name:    response.User.GetName(),
		Groups:  response.User.GetGroups(),
		UID:     response.User.GetUID(),
		Extra:   response.User.GetExtra(),
	}, nil
}

// checkNames refuses names that would be another's without their prefix. The
// prefix alone makes them harmless; that a mapping yields them is a mistake, or
// an issuer's attempt, that shall not go unseen.
func checkNames(u user.Info) *Failure {
	if u.GetName() == "" {
		return fail(ReasonReservedName, "claimMappings.username yields no name")
	}
	if reserved(u.GetName()) {
		return fail(ReasonReservedName, "claimMappings.username yields %.256q: %s", u.GetName(), whyReserved)
	}
	for _, group := range u.GetGroups() {
		if reserved(group) {
			return fail(ReasonReservedName, "claimMappings.groups yields %.256q: %s", group, whyReserved)
		}
	}
	return nil
}

// noNetwork refuses every request.
type noNetwork struct{}

func (noNetwork) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("a token's claims must not make the hub fetch anything")
}
