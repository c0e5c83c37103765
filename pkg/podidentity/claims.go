package podidentity

import (
	"time"

	"github.com/go-jose/go-jose/v4/json"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"cellcast.io/cellcast/pkg/keyset"
)

const (
	// skew is how far the clock of a target may be ahead of the hub's.
	skew = 30 * time.Second
	// maxLifetime is the longest that a token may live. Offline, the pod can be
	// gone for as long before its token is refused.
	maxLifetime = 24 * time.Hour
	// maxUID is the longest UID, in bytes; Kubernetes' have 36.
	maxUID = 64
)

// claims are those of a projected token that the hub reads. Names are
// case-sensitive and may not be given twice, at any depth.
type claims struct {
	Issuer     string       `json:"iss"`
	Subject    string       `json:"sub"`
	Audience   jwt.Audience `json:"aud"`
	Expiry     *keyset.Date `json:"exp"`
	NotBefore  *keyset.Date `json:"nbf"`
	IssuedAt   *keyset.Date `json:"iat"`
	Kubernetes struct {
		Namespace      string `json:"namespace"`
		ServiceAccount struct {
			Name string `json:"name"`
		} `json:"serviceaccount"`
		Pod struct {
			Name string    `json:"name"`
			UID  types.UID `json:"uid"`
		} `json:"pod"`
	} `json:"kubernetes.io"`
}

// unverified returns the pod that a token names which nobody has checked, or
// what is wrong with it by its own account.
func (r Registration) unverified(token string, now time.Time) (Pod, *Failure) {
	payload, err := keyset.Unverified(token)
	if err != nil {
		return Pod{}, r.Target.keyFailure(err)
	}
	return r.read(payload, now)
}

// read returns the pod of a token's payload that says what it must at the time
// now.
func (r Registration) read(payload []byte, now time.Time) (Pod, *Failure) {
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return Pod{}, r.Target.fail(ReasonMalformed, "the claims can't be read")
	}
	if failure := r.checkToken(c); failure != nil {
		return Pod{}, failure
	}
	if failure := r.checkTimes(c, now); failure != nil {
		return Pod{}, failure
	}
	return r.pod(c)
}

// checkToken compares literally.
func (r Registration) checkToken(c claims) *Failure {
	switch {
	case r.Issuer != "" && c.Issuer != r.Issuer:
		return r.Target.fail(ReasonIssuer, "the issuer is %.256q, not %q", c.Issuer, r.Issuer)
	case len(c.Audience) != 1 || c.Audience[0] != r.Audience:
		return r.Target.fail(ReasonAudience, "the audience is %.256q, not %q alone", c.Audience, r.Audience)
	}
	return nil
}

// checkTimes has no leeway on exp: a token ends when it says so. The life of
// one that doesn't say when it was issued counts from now.
func (r Registration) checkTimes(c claims, now time.Time) *Failure {
	switch {
	case c.Expiry == nil:
		return r.Target.fail(ReasonExpired, "there is no expiry")
	case !now.Before(c.Expiry.Time):
		return r.Target.fail(ReasonExpired, "the token expired at %s", c.Expiry)
	case c.NotBefore != nil && now.Add(skew).Before(c.NotBefore.Time):
		return r.Target.fail(ReasonNotYetValid, "the token is not valid before %s", c.NotBefore)
	case c.IssuedAt != nil && now.Add(skew).Before(c.IssuedAt.Time):
		return r.Target.fail(ReasonNotYetValid, "the token was issued in the future, at %s", c.IssuedAt)
	}
	issued := now
	if c.IssuedAt != nil {
		issued = c.IssuedAt.Time
	}
	if lifetime := c.Expiry.Sub(issued); lifetime > maxLifetime {
		return r.Target.fail(ReasonLifetime, "the token lives for %s, more than %s", lifetime.Round(time.Second), maxLifetime)
	}
	return nil
}

// pod reads the claims that Kubernetes puts into a token that is bound to a pod.
func (r Registration) pod(c claims) (Pod, *Failure) {
	k := c.Kubernetes
	if k.Namespace != r.Namespace {
		return Pod{}, r.Target.fail(ReasonNamespace, "the namespace is %.256q, not %q", k.Namespace, r.Namespace)
	}
	if k.ServiceAccount.Name != r.ServiceAccount {
		return Pod{}, r.Target.fail(ReasonServiceAccount, "the ServiceAccount is %.256q, not %q", k.ServiceAccount.Name, r.ServiceAccount)
	}
	if want := r.username(); c.Subject != want {
		return Pod{}, r.Target.fail(ReasonServiceAccount, "the subject is %.256q, not %q", c.Subject, want)
	}
	if k.Pod.Name == "" || k.Pod.UID == "" {
		return Pod{}, r.Target.fail(ReasonNoPod, "the token isn't bound to a pod")
	}
	if len(validation.IsDNS1123Subdomain(k.Pod.Name)) != 0 || len(k.Pod.UID) > maxUID {
		return Pod{}, r.Target.fail(ReasonNoPod, "%.256q with UID %.256q is no pod", k.Pod.Name, k.Pod.UID)
	}
	return Pod{
		Namespace:      k.Namespace,
		ServiceAccount: k.ServiceAccount.Name,
		Name:           k.Pod.Name,
		UID:            k.Pod.UID,
		Target:         r.Target,
	}, nil
}

// username is what the pods' ServiceAccount is called by Kubernetes.
func (r Registration) username() string {
	return serviceaccount.MakeUsername(r.Namespace, r.ServiceAccount)
}
