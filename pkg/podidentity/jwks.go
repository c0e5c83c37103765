package podidentity

import (
	"context"
	"errors"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4/json"

	"cellcast.io/cellcast/pkg/keyset"
)

// jwks checks tokens offline. A signature costs less to check than an answer to
// find again, so nothing is cached but the keys.
type jwks struct {
	registration Registration
	keys         *keyset.Set
}

// Validate looks at the claims first, so that a token that is wrong anyway
// reads no keys, and once more when the signature was checked: reading keys
// takes time.
func (v *jwks) Validate(ctx context.Context, token string) (Pod, error) {
	if _, failure := v.registration.unverified(token, time.Now()); failure != nil {
		return Pod{}, failure
	}
	payload, failure := v.verify(ctx, token)
	if failure != nil {
		return Pod{}, failure
	}
	pod, failure := v.registration.read(payload, time.Now())
	if failure != nil {
		return Pod{}, failure
	}
	return pod, nil
}

// verify returns the payload of a token that the target has signed.
func (v *jwks) verify(ctx context.Context, token string) ([]byte, *Failure) {
	keys := &witness{keys: v.keys}
	verifier := oidc.NewVerifier(v.registration.Issuer, keys, &oidc.Config{
		ClientID:             v.registration.Audience,
		SupportedSigningAlgs: keyset.Algorithms(),
	})
	verified, err := verifier.Verify(ctx, token)
	var expired *oidc.TokenExpiredError
	switch target := v.registration.Target; {
	case keys.err != nil:
		return nil, target.keyFailure(keys.err)
	case errors.As(err, &expired):
		return nil, target.fail(ReasonExpired, "the token expired while the keys were read")
	case err != nil:
		return nil, target.fail(ReasonMalformed, "the claims can't be read")
	}
	var payload json.RawMessage
	if err := verified.Claims(&payload); err != nil {
		return nil, v.registration.Target.fail(ReasonMalformed, "the claims can't be read")
	}
	return payload, nil
}

// witness keeps what the key set has against one token, for the verifier tells
// it in words alone.
type witness struct {
	keys oidc.KeySet
	err  error
}

// VerifySignature asks the key set.
func (w *witness) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := w.keys.VerifySignature(ctx, token)
	w.err = err
	return payload, err
}
