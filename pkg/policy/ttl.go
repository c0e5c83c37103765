package policy

import (
	"time"

	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/revocation"
)

// Floor is the shortest life that Kubernetes issues a token for (TokenRequest
// refuses expirationSeconds under 600). A request under it is raised to it. A
// maximum under it is refused: to issue ten minutes where the operator said
// five would overrule the one number that bounds a compromise.
const Floor = 10 * time.Minute

const (
	ttlPath = "spec.ttl"
	// maxTTLText is the length of a duration on the wire, in bytes.
	maxTTLText = 32
)

// TTL is how long a credential lives: unless asked otherwise, and at most.
type TTL struct {
	Default, Max time.Duration
}

// TTLRules are what bounds the life of a credential for one cell, narrowest
// last: the cell's env label, the policy's override, the hub's ceiling.
type TTLRules struct {
	// Cell is the cell's name, for messages.
	Cell string
	// Env is the value of the cell's label env; empty counts as production.
	Env string
	// Policy is the governing policy.
	Policy *Policy
	// Ceiling is the hub's --token-max-ttl. It is never exceeded; zero permits
	// nothing.
	Ceiling time.Duration
}

// Bounds returns the default and the maximum that the rules come to. A policy
// may widen what the env label says, the ceiling only narrows. An override of
// one number moves the other where they would cross: a default that the
// operator wrote down lifts a maximum that they didn't, and a maximum always
// lowers a default.
//
// A Max under Floor is returned as it is; ResolveTTL refuses it.
func Bounds(r TTLRules) TTL {
	t := builtinTTL(r.Env)
	if r.Policy != nil {
		override := r.Policy.TokenTTL
		if override.Default > 0 {
			t.Default = override.Default
			t.Max = max(t.Max, t.Default)
		}
		if override.Max > 0 {
			t.Max = override.Max
		}
	}
	t.Max = min(t.Max, r.Ceiling)
	t.Default = min(t.Default, t.Max)
	return t
}

// builtinTTL is what the env label of a cell says. A production cell whose
// label was forgotten must not be the one that gives an hour, so anything
// unknown has the tightest bounds.
func builtinTTL(env string) TTL {
	switch env {
	case "dev", "development":
		return TTL{Default: 30 * time.Minute, Max: 60 * time.Minute}
	case "stage", "staging":
		return TTL{Default: 15 * time.Minute, Max: 30 * time.Minute}
	case "prod", "production":
		return TTL{Default: 10 * time.Minute, Max: 15 * time.Minute}
	default:
		return TTL{Default: 10 * time.Minute, Max: 15 * time.Minute}
	}
}

// Least returns the shortest life that the policy can give a credential: Floor,
// or less where it's revocable, for then the cell's agent ends it.
func (p *Policy) Least() time.Duration {
	if p != nil && p.scope.Revocable {
		return revocation.MinTTL
	}
	return Floor
}

// ResolveTTL returns how long a credential shall live, in whole seconds, at
// least what the policy can give and at most the maximum of the rules. asked is
// what the request says; zero means that it says nothing.
//
// It refuses a request above the maximum (InvalidRequest on spec.ttl), and,
// whatever is asked, a maximum under the least (MintFailed: the platform team
// has to change a number, and the code's meaning says so).
func ResolveTTL(asked time.Duration, r TTLRules) (time.Duration, *refusal.Refusal) {
	t := Bounds(r)
	var name string
	if r.Policy != nil {
		name = r.Policy.Name
	}
	least := r.Policy.Least()
	if t.Max < least {
		return 0, refusal.New(refusal.MintFailed,
			"%s is the most that policy %q and the hub allow on cell %q, and Kubernetes issues no token for less than %s; "+
				"ask the platform team to raise the policy's tokenTTL.max or the hub's --token-max-ttl", t.Max, name, r.Cell, least)
	}
	if asked < 0 {
		return 0, refusal.Invalid(ttlPath, "must be more than zero, such as 15m; leave ttl out for the default")
	}
	if asked > t.Max {
		return 0, refusal.Invalid(ttlPath,
			"%s is longer than %s, the most that policy %q and the hub allow on cell %q; ask for less or leave ttl out",
			asked, t.Max, name, r.Cell)
	}
	if asked == 0 {
		asked = t.Default
	}
	return max(asked.Truncate(time.Second), least), nil
}

// ParseTTL reads a duration as it stands in a request. Empty is zero, which
// means that nothing is asked for; everything else is more than zero. It
// refuses with InvalidRequest on spec.ttl.
func ParseTTL(text string) (time.Duration, *refusal.Refusal) {
	if text == "" {
		return 0, nil
	}
	if len(text) > maxTTLText {
		return 0, refusal.Invalid(ttlPath, "is %d bytes long, too long for a duration; write it like 15m or 1h30m, or leave ttl out", len(text))
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, refusal.Invalid(ttlPath, "%q is not a duration; write it like 15m or 1h30m, or leave ttl out", text)
	}
	if d <= 0 {
		return 0, refusal.Invalid(ttlPath, "%q is not more than zero; write it like 15m, or leave ttl out for the default", text)
	}
	return d, nil
}
