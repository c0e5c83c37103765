package mint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/secret"
)

// accept makes a credential of a cell's answer, or refuses it. The hub can't
// check the signature and needn't: the cell will. What it reads in the token is
// what the token will be worth there, whatever the status beside it says.
func accept(cell string, now time.Time, ask Ask, bound *corev1.Secret, status authenticationv1.TokenRequestStatus) (Credential, error) {
	if status.Token == "" {
		return Credential{}, refusal.New(refusal.MintFailed, "cell %s answered without a token", cell)
	}
	claims, err := read(status.Token)
	if err != nil {
		return Credential{}, failed(err, "cell %s issued a token that the hub can't read", cell)
	}
	if status.ExpirationTimestamp.IsZero() || claims.Expiry == nil {
		return Credential{}, refusal.New(refusal.MintFailed, "cell %s issued a token without saying when it ends; it was thrown away", cell)
	}
	first, last := ordered(status.ExpirationTimestamp.Time, claims.Expiry.Time())
	account := ask.Namespace + "/" + ask.ServiceAccountName
	switch {
	case last.After(now.Add(ask.Ceiling + Skew)):
		return Credential{}, refusal.New(refusal.MintFailed, "cell %s issued a token that ends at %s, past the ceiling of %s; it was thrown away: check the cell's clock and the token settings of its API server", cell, stamp(last), ask.Ceiling)
	case !first.After(now):
		return Credential{}, refusal.New(refusal.MintFailed, "cell %s issued a token that ended at %s already: check the cell's clock", cell, stamp(first))
	case claims.Subject != "system:serviceaccount:"+ask.Namespace+":"+ask.ServiceAccountName:
		return Credential{}, refusal.New(refusal.MintFailed, "cell %s issued a token that isn't for %s; it was thrown away", cell, account)
	case bound != nil && !claims.boundTo(bound):
		return Credential{}, refusal.New(refusal.MintFailed, "cell %s issued a token for %s that can't be revoked; it was thrown away", cell, account)
	case len(ask.Audiences) > 0 && !within(claims.Audience, ask.Audiences):
		return Credential{}, refusal.New(refusal.MintFailed, "cell %s issued a token for %s that is good for more than was asked; it was thrown away", cell, account)
	}
	digest := sha256.Sum256([]byte(status.Token))
	return Credential{
		Scope: ask.Scope, Token: secret.New(status.Token), Expiration: first,
		JTI: id(claims.ID), SHA256: hex.EncodeToString(digest[:]),
	}, nil
}

// claims are what the hub reads in a token.
type claims struct {
	jwt.Claims
	Kubernetes struct {
		Secret struct {
			Name string    `json:"name"`
			UID  types.UID `json:"uid"`
		} `json:"secret"`
	} `json:"kubernetes.io"`
}

// boundTo reports whether the token dies with the Secret.
func (c claims) boundTo(bound *corev1.Secret) bool {
	return c.Kubernetes.Secret.Name == bound.Name && c.Kubernetes.Secret.UID == bound.UID && bound.UID != ""
}

// read returns the claims of the token. Its error quotes nothing of it.
func read(token string) (claims, error) {
	var read claims
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
		jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	})
	if err != nil || parsed.UnsafeClaimsWithoutVerification(&read) != nil {
		return claims{}, errors.New("it isn't a signed JWT with the registered claims")
	}
	return read, nil
}

// id is the token's id where it's one that an audit record may hold: short, and
// of the characters that ids are made of.
func id(jti string) string {
	const idCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:"
	other := func(r rune) bool { return !strings.ContainsRune(idCharacters, r) }
	if len(jti) > 128 || strings.ContainsFunc(jti, other) {
		return ""
	}
	return jti
}

func within(got, asked []string) bool {
	return len(got) > 0 && !slices.ContainsFunc(got, func(a string) bool { return !slices.Contains(asked, a) })
}

func ordered(a, b time.Time) (first, last time.Time) {
	if b.Before(a) {
		return b, a
	}
	return a, b
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
