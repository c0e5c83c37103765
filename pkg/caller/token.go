package caller

import (
	"context"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4/json"
	"github.com/go-jose/go-jose/v4/jwt"

	"cellcast.io/cellcast/pkg/keyset"
)

const (
	// skew is how far an issuer's clock may be ahead of the hub's.
	skew = 30 * time.Second
	// maxLifetime is the longest that a token may live. CI tokens live for
	// minutes and projected ones for an hour; one that lives longer than a day
	// is a stored credential by another name.
	maxLifetime = 24 * time.Hour
)

// KeySet checks signatures; *keyset.Set is one.
type KeySet interface {
	// VerifySignature returns the payload of a token whose signature is good.
	VerifySignature(ctx context.Context, token string) ([]byte, error)
}

// claims are the registered claims of a JWT (RFC 7519 section 4.1) that the
// hub reads itself. Names are case-sensitive and may not be given twice.
type claims struct {
	Issuer    string       `json:"iss"`
	Subject   string       `json:"sub"`
	Audience  jwt.Audience `json:"aud"`
	Expiry    *keyset.Date `json:"exp"`
	NotBefore *keyset.Date `json:"nbf"`
	IssuedAt  *keyset.Date `json:"iat"`
}

// expectation is what the claims of a good token say.
type expectation struct {
	issuer    string
	subject   string // empty takes any that isn't
	audiences []string
	// soleAudience refuses a token that is good for others too.
	soleAudience bool
	// lifetime bounds a token that must say when it was issued; zero is
	// maxLifetime, for tokens that need not.
	lifetime time.Duration
}

// verify returns the claims of a token that is good at the time now. It looks
// at the claims first, so that a token that is wrong anyway reads no keys, and
// believes them only when the signature was checked.
func (e expectation) verify(ctx context.Context, keys KeySet, token string, now func() time.Time) (claims, *Failure) {
	unverified, failure := unverifiedClaims(token)
	if failure != nil {
		return claims{}, failure
	}
	if failure := e.check(unverified, now()); failure != nil {
		return claims{}, failure
	}
	payload, err := keys.VerifySignature(ctx, token)
	if err != nil {
		return claims{}, keyFailure(err)
	}
	verified, failure := parseClaims(payload)
	if failure != nil {
		return claims{}, failure
	}
	if failure := e.check(verified, now()); failure != nil {
		return claims{}, failure
	}
	return verified, nil
}

// check compares literally. There is no leeway on exp: a token ends when it
// says so.
func (e expectation) check(c claims, now time.Time) *Failure {
	switch {
	case c.Issuer != e.issuer:
		return fail(ReasonIssuer, "the issuer is %.256q, not %q", c.Issuer, e.issuer)
	case c.Subject == "":
		return fail(ReasonSubject, "there is no subject")
	case e.subject != "" && c.Subject != e.subject:
		return fail(ReasonSubject, "the subject is %.256q, not %q", c.Subject, e.subject)
	case !slices.ContainsFunc(c.Audience, func(a string) bool { return slices.Contains(e.audiences, a) }):
		return fail(ReasonAudience, "the audience is %.256q, not one of %q", c.Audience, e.audiences)
	case e.soleAudience && len(c.Audience) != 1:
		return fail(ReasonAudience, "the audience is %.256q, not one of %q alone", c.Audience, e.audiences)
	case c.Expiry == nil:
		return fail(ReasonExpired, "there is no expiry")
	case !now.Before(c.Expiry.Time):
		return fail(ReasonExpired, "the token expired at %s", c.Expiry)
	case c.NotBefore != nil && now.Add(skew).Before(c.NotBefore.Time):
		return fail(ReasonNotYetValid, "the token is not valid before %s", c.NotBefore)
	case c.IssuedAt != nil && now.Add(skew).Before(c.IssuedAt.Time):
		return fail(ReasonNotYetValid, "the token was issued in the future, at %s", c.IssuedAt)
	}
	return e.checkLifetime(c, now)
}

// checkLifetime bounds the life of a token, which counts from now where the
// token doesn't say when it was issued.
func (e expectation) checkLifetime(c claims, now time.Time) *Failure {
	issued, most := now, maxLifetime
	if c.IssuedAt != nil {
		issued = c.IssuedAt.Time
	}
	if e.lifetime > 0 {
		most = e.lifetime
		if c.IssuedAt == nil {
			return fail(ReasonLifetime, "the token doesn't say when it was issued")
		}
	}
	if lifetime := c.Expiry.Sub(issued); lifetime > most {
		return fail(ReasonLifetime, "the token lives for %s, more than %s", lifetime.Round(time.Second), most)
	}
	return nil
}

// unverifiedClaims are the claims of a token that nobody has checked.
func unverifiedClaims(token string) (claims, *Failure) {
	payload, err := keyset.Unverified(token)
	if err != nil {
		return claims{}, keyFailure(err)
	}
	return parseClaims(payload)
}

func parseClaims(payload []byte) (claims, *Failure) {
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return claims{}, fail(ReasonMalformed, "the registered claims can't be read")
	}
	return c, nil
}
