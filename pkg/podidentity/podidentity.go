// Package podidentity says which pod shows a token: a projected token of the
// pod's ServiceAccount, bound to the pod, whose claims name it.
//
// A target or cell has one way to prove it, its Mode. The pods of a brought
// target are checked offline, by the keys that the target's own API publishes
// (JWKS): its owner can't grant the hub a TokenReview. Those of a fleet cell
// are checked by the cell (TokenReview), which also knows that a pod is gone;
// offline that shows only when the token ends.
//
// A Validator promises:
//
//   - It speaks for one target or cell. Its keys, or its reviews, come from
//     there alone, so two that share an issuer string can't vouch for each
//     other's pods.
//   - What is wrong by a token's own claims is refused before anything is read
//     or asked. The claims are believed only when the signature was checked.
//   - What can't be checked isn't accepted, and isn't a rejection either: see
//     Reason.MayClear.
//   - It keeps no token, and no error of it holds one.
//
// Whether the pod is the one that was created, by name and UID, is for the
// caller to compare: a pod of the same name may be another.
package podidentity

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Pod is who shows a token.
type Pod struct {
	Namespace      string
	ServiceAccount string
	Name           string
	UID            types.UID
	// Target is where the pod runs.
	Target Target
}

// Validator tells whose a token is. It's safe for use by many at once.
type Validator interface {
	// Validate returns the pod that the token is bound to. The error is a
	// *Failure.
	Validate(ctx context.Context, token string) (Pod, error)
}

// Mode is how pods are proven.
type Mode string

// The modes. There are no others.
const (
	// ModeJWKS checks tokens offline, by the keys of a brought target.
	ModeJWKS Mode = "JWKS"
	// ModeTokenReview asks the fleet cell.
	ModeTokenReview Mode = "TokenReview"
)

// Target is a brought target or a fleet cell, by the UID of its row, and the
// mode that holds there.
type Target struct {
	UID  types.UID
	Mode Mode
}

// String is target:UID or cell:UID.
func (t Target) String() string {
	switch t.Mode {
	case ModeJWKS:
		return fmt.Sprintf("target:%s", t.UID)
	case ModeTokenReview:
		return fmt.Sprintf("cell:%s", t.UID)
	default:
		return fmt.Sprintf("%s:%s", t.Mode, t.UID)
	}
}

// Registration is what the row of a target or cell says of its pods.
type Registration struct {
	Target Target
	// Endpoint and CABundle are where its API is. Keys that were read are not
	// carried over to another.
	Endpoint, CABundle string
	// Issuer is the exact issuer of its tokens. A cell's may be empty: the cell
	// knows its own.
	Issuer string
	// Audience is the only one that a token may be issued for.
	Audience string
	// Namespace and ServiceAccount are those of the pods.
	Namespace, ServiceAccount string
}

// check returns what is missing. A validator without it would take too much.
func (r Registration) check() error {
	required := []struct{ name, value string }{
		{"UID", string(r.Target.UID)},
		{"audience", r.Audience},
		{"namespace", r.Namespace},
		{"ServiceAccount", r.ServiceAccount},
	}
	if r.Target.Mode == ModeJWKS {
		required = append(required, struct{ name, value string }{"issuer", r.Issuer})
	}
	for _, field := range required {
		if field.value == "" {
			return fmt.Errorf("pods of %s can't be proven: the registration has no %s", r.Target, field.name)
		}
	}
	return nil
}
