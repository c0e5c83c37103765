// Package mint gets a short-lived token of a ServiceAccount from a cell
// (TokenRequest), hands it over, and keeps nothing. What the hub may issue is
// bounded twice: by what it asks for, and by what came back. A token that lives
// longer than the ceiling, speaks for someone else, or is good for more than
// was asked, is thrown away.
package mint

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"cellcast.io/cellcast/pkg/revocation"
	"cellcast.io/cellcast/pkg/secret"
)

// Floor is the least life that Kubernetes issues a token for.
const Floor = 10 * time.Minute

// Skew is how much later than the ceiling a token may end: the cell's clock may
// be ahead of the hub's.
const Skew = time.Minute

// Cell is a cell that can be asked for a token. Its errors have a kind of
// package failure; or they are refusals already, of what isn't mended as a cell
// is, and are passed on.
type Cell interface {
	// Name is the cell's name.
	Name() string
	// CreateToken asks for a token of one of the cell's ServiceAccounts.
	CreateToken(ctx context.Context, namespace, serviceAccount string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)
	// CreateSecret makes a Secret and returns it as the cell has it.
	CreateSecret(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error)
	// DeleteSecret deletes a Secret.
	DeleteSecret(ctx context.Context, namespace, name string) error
}

// Scope is whose token it is, and what it's good for.
type Scope struct {
	// Namespace and ServiceAccountName name the ServiceAccount on the cell.
	Namespace, ServiceAccountName string
	// Audiences are what the token is good for. Empty means the cell's API
	// server.
	Audiences []string
}

// Ask is what is wanted of a cell.
type Ask struct {
	Scope
	// TTL is how long the token shall live: at least Floor, at most Ceiling.
	// Parts of a second don't count.
	TTL time.Duration
	// Ceiling is how long it may live, whatever the cell issues.
	Ceiling time.Duration
	// Binding is what the token shall die with; nil where it just expires.
	Binding *Binding
}

// Binding is an empty Secret that a token is bound to.
type Binding struct {
	// Name is the Secret's; its namespace is the ServiceAccount's.
	Name string
	// TTL is after how long the cell's agent deletes it.
	TTL time.Duration
}

// Credential is a token, and what may be told of it.
type Credential struct {
	Scope
	// Token is the bearer token.
	Token secret.Value
	// Expiration is when it ends. That may be sooner than asked for.
	Expiration time.Time
	// JTI is the token's id, which the cell's audit log has too. Empty where the
	// cell gives none (before Kubernetes 1.30).
	JTI string
	// SHA256 is the digest of the whole token, in hexadecimal.
	SHA256 string
	// RevokesAt is when the cell's agent ends it; zero where it just expires.
	RevokesAt time.Time
}

// Mint gets a credential from the cell; now is when it's asked for. The error is
// a MintUnavailable or MintFailed refusal that says to a stranger what's wrong
// and keeps the cause for the log, or a fault where the hub asked for what it
// must not.
func Mint(ctx context.Context, now time.Time, cell Cell, ask Ask) (Credential, error) {
	if err := ask.check(); err != nil {
		return Credential{}, fmt.Errorf("minting on cell %s: %w", cell.Name(), err)
	}
	if ask.Binding != nil {
		return mintBound(ctx, now, cell, ask)
	}
	return mint(ctx, now, cell, ask, nil)
}

// mint asks for the token, bound to the Secret where there is one.
func mint(ctx context.Context, now time.Time, cell Cell, ask Ask, bound *corev1.Secret) (Credential, error) {
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			Audiences:         ask.Audiences,
			ExpirationSeconds: ptr.To(int64(ask.TTL / time.Second)),
		},
	}
	if bound != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Secret", Name: bound.Name, UID: bound.UID,
		}
	}
	answer, err := cell.CreateToken(ctx, ask.Namespace, ask.ServiceAccountName, request)
	if err != nil {
		return Credential{}, refuse(cell.Name(), ask, err)
	}
	return accept(cell.Name(), now, ask, bound, answer.Status)
}

// check holds what the rules on TTL and scope must have made true before.
func (a Ask) check() error {
	switch {
	case a.Namespace == "" || a.ServiceAccountName == "":
		return errors.New("the scope names no ServiceAccount")
	case a.TTL < Floor:
		return fmt.Errorf("a life of %s is under the %s that Kubernetes issues a token for", a.TTL, Floor)
	case a.TTL > a.Ceiling:
		return fmt.Errorf("a life of %s is over the ceiling of %s", a.TTL, a.Ceiling)
	case a.Binding != nil && (a.Binding.Name == "" || a.Binding.TTL < revocation.MinTTL || a.Binding.TTL > a.TTL):
		return fmt.Errorf("a token of %s can't be ended after %s", a.TTL, a.Binding.TTL)
	}
	return nil
}
