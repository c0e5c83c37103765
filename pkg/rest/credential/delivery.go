package credential

import (
	"context"
	"crypto/rand"

	"k8s.io/apiserver/pkg/warning"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/revocation"
	"cellcast.io/cellcast/pkg/seal"
)

// Delivery is how the caller wants to get a credential, and by what it can end
// it.
type Delivery struct {
	recipient *seal.Recipient // nil: in the clear
	nonce     string          // empty: drawn here
}

// ParseDelivery reads the part of a question's spec that is about it.
func ParseDelivery(recipient *cellcastv1alpha1.Recipient, nonce string) (Delivery, *refusal.Refusal) {
	d := Delivery{nonce: nonce}
	if nonce != "" {
		if refused := revocation.ParseNonce("spec.revocationNonce", nonce); refused != nil {
			return Delivery{}, refused
		}
	}
	if recipient != nil {
		parsed, refused := seal.ParseRecipient("spec.recipient", *recipient)
		if refused != nil {
			return Delivery{}, refused
		}
		d.recipient = &parsed
	}
	return d, nil
}

// drawn returns the delivery with a nonce in it.
func (d Delivery) drawn() Delivery {
	if d.nonce == "" {
		d.nonce = rand.Text() // 26 characters, 130 bits
	}
	return d
}

// unsealed is what a caller is told whose credential travels in the clear.
const unsealed = "the credential travels unsealed, and whatever records this answer has it: send spec.recipient, a P-256 public key as a JWK, to have it sealed"

// deliver puts the token into the credential, sealed where there is a key.
func (d Delivery) deliver(ctx context.Context, token string, into *cellcastv1alpha1.Credential) error {
	if d.recipient == nil {
		warning.AddWarning(ctx, "", unsealed)
		into.Token = token
		return nil
	}
	var err error
	into.SealedToken, err = d.recipient.Seal(token)
	return err
}
