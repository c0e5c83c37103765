package registration

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// discoveryPath is where an issuer's discovery document is, by OpenID Connect
// Discovery 1.0, section 4.
const discoveryPath = "/.well-known/openid-configuration"

// AuthenticationConfiguration is the part that we write of the file of that
// kind (apiserver.config.k8s.io/v1, kube-apiserver --authentication-config).
// The whole type is in k8s.io/apiserver, which a client doesn't link.
type AuthenticationConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	JWT             []JWTAuthenticator `json:"jwt"`
}

// JWTAuthenticator is an issuer that an API server trusts.
type JWTAuthenticator struct {
	Issuer               Issuer                `json:"issuer"`
	ClaimValidationRules []ClaimValidationRule `json:"claimValidationRules"`
	ClaimMappings        ClaimMappings         `json:"claimMappings"`
}

// Issuer is whose tokens are accepted, and for which audience.
type Issuer struct {
	URL                  string   `json:"url"`
	DiscoveryURL         string   `json:"discoveryURL,omitempty"`
	CertificateAuthority string   `json:"certificateAuthority,omitempty"`
	Audiences            []string `json:"audiences"`
}

// ClaimValidationRule is CEL that must hold over the token's claims.
type ClaimValidationRule struct {
	Expression string `json:"expression"`
	Message    string `json:"message"`
}

// ClaimMappings is how a token becomes a user.
type ClaimMappings struct {
	Username PrefixedClaim `json:"username"`
}

// PrefixedClaim is a prefix and the claim that follows it.
type PrefixedClaim struct {
	Claim  string `json:"claim"`
	Prefix string `json:"prefix"`
}

// Authentication is the trust of one cell in this hub: the hub's ServiceAccount
// alone, of its issuer alone, for that cell's audience alone.
func (h Hub) Authentication(audience string) AuthenticationConfiguration {
	h = h.withDefaults()
	sub := subject(h.ServiceAccount)
	return AuthenticationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiserver.config.k8s.io/v1", Kind: "AuthenticationConfiguration"},
		JWT: []JWTAuthenticator{{
			Issuer: Issuer{
				URL:                  h.Issuer,
				DiscoveryURL:         h.discoveryURL(),
				CertificateAuthority: string(h.MirrorCA),
				Audiences:            []string{audience},
			},
			ClaimValidationRules: []ClaimValidationRule{{
				Expression: "claims.sub == " + strconv.Quote(sub),
				Message:    fmt.Sprintf("only %s of the hub is trusted", h.ServiceAccount),
			}, {
				// The hub asks for half an hour. Whoever got hold of it once and
				// asked its API server for ten years must not keep the cells.
				Expression: "claims.exp - claims.iat <= 3600",
				Message:    "the hub's tokens live for an hour at most",
			}},
			ClaimMappings: ClaimMappings{Username: PrefixedClaim{Claim: "sub", Prefix: UserPrefix}},
		}},
	}
}

// discoveryURL is empty where the issuer publishes its own document.
func (h Hub) discoveryURL() string {
	if h.MirrorURL == "" || h.MirrorURL == h.Issuer {
		return ""
	}
	return h.MirrorURL + discoveryPath
}

// AuditPolicy is the part that we write of the file of that kind
// (audit.k8s.io/v1, kube-apiserver --audit-policy-file).
type AuditPolicy struct {
	metav1.TypeMeta `json:",inline"`
	Rules           []AuditRule `json:"rules"`
}

// AuditRule sets how much of matching requests is logged.
type AuditRule struct {
	Level     string           `json:"level"`
	Resources []AuditResources `json:"resources"`
}

// AuditResources are resources of a group.
type AuditResources struct {
	Group     string   `json:"group"`
	Resources []string `json:"resources"`
}

// auditPolicy keeps requests and answers that have a token in them, of
// serviceaccounts/token and of tokenreviews, out of the log; who asked, when and
// for whom stays in it.
func auditPolicy() AuditPolicy {
	return AuditPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: "audit.k8s.io/v1", Kind: "Policy"},
		Rules: []AuditRule{{
			Level: "Metadata",
			Resources: []AuditResources{
				{Resources: []string{"serviceaccounts/token"}},
				{Group: "authentication.k8s.io", Resources: []string{"tokenreviews"}},
			},
		}},
	}
}
