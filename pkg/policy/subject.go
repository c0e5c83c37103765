package policy

import "slices"

// serviceAccountUser starts the user name of a ServiceAccount; its namespace
// and name follow, with a colon between them.
const serviceAccountUser = "system:serviceaccount:"

// subject is a compiled PolicySubject: a conjunction of the constraints that
// are set.
type subject struct {
	// index is the subject's place in spec.subjects.
	index int
	// specificity is the number of constraints. Since all of them must match,
	// it is the number that matched, too.
	specificity int

	issuer, subject string
	claims          []claim // sorted by name

	users, groups, serviceAccounts []string // the last as user names

	expression *expression
}

// claim is the exact value of a claim.
type claim struct{ name, value string }

// countConstraints is the number of constraints that are set. Each clause
// counts once, however many names it lists, and so does each claim.
func (s *subject) countConstraints() int {
	n := len(s.claims)
	for _, set := range []bool{s.issuer != "", s.subject != "", len(s.users) > 0, len(s.groups) > 0,
		len(s.serviceAccounts) > 0, s.expression != nil} {
		if set {
			n++
		}
	}
	return n
}

// isForHubUsers reports whether the subject has a constraint that no pipeline
// matches.
func (s *subject) isForHubUsers() bool {
	return len(s.users)+len(s.groups)+len(s.serviceAccounts) > 0
}

// mismatch returns the first constraint that the caller doesn't match; the
// zero mismatch when it matches them all. A subject without constraints, which
// Compile lets nobody make, matches nobody. The expression comes last: it costs
// the most.
func (s *subject) mismatch(c *Caller, v *variables) mismatch {
	switch {
	case s.specificity == 0:
		return mismatch{constraint: "any"}
	case s.issuer != "" && s.issuer != c.Issuer:
		return mismatch{constraint: "issuer"}
	case s.subject != "" && s.subject != c.Subject:
		return mismatch{constraint: "subject"}
	case s.isForHubUsers() && c.IsPipeline():
		return mismatch{constraint: "hub users"}
	case len(s.users) > 0 && !slices.Contains(s.users, c.User):
		return mismatch{constraint: "users"}
	case len(s.groups) > 0 && !share(s.groups, c.Groups):
		return mismatch{constraint: "groups"}
	case len(s.serviceAccounts) > 0 && !slices.Contains(s.serviceAccounts, c.User):
		return mismatch{constraint: "serviceAccounts"}
	}
	for _, claim := range s.claims {
		if !c.hasClaim(claim.name, claim.value) {
			return mismatch{constraint: "claims", claim: claim.name}
		}
	}
	if s.expression != nil {
		if yes, err := s.expression.holds(v, c); !yes {
			return mismatch{constraint: "expression", err: err}
		}
	}
	return mismatch{}
}

// mismatch is why a subject doesn't match a caller.
type mismatch struct {
	constraint string // empty: it matches
	claim      string
	err        error // why the expression failed, where it did
}

func (m mismatch) none() bool { return m.constraint == "" }

// String says it in some words, for whoever writes policies. Of the caller it
// repeats nothing but what the error of a failed expression does.
func (m mismatch) String() string {
	switch m.constraint {
	case "":
		return "matches"
	case "hub users":
		return "users, groups and serviceAccounts are for callers of the hub's own, and this is a pipeline"
	case "claims":
		return "claim " + quote(m.claim) + " is missing or has another value"
	case "expression":
		if m.err != nil {
			return "expression failed with " + quote(m.err.Error())
		}
		return "expression is false"
	case "issuer", "subject":
		return m.constraint + " is another"
	case "users", "groups", "serviceAccounts":
		return "none of " + m.constraint + " is the caller's"
	default:
		return "there is no constraint"
	}
}

// share reports whether the two have an element in common.
func share(a, b []string) bool {
	for _, s := range a {
		if slices.Contains(b, s) {
			return true
		}
	}
	return false
}

// sameCallers reports whether some caller matches both subjects for the very
// same reasons: they agree on issuer, subject, claims and expression, and of
// each list that one of them has, the other has one with a name in common.
func (s *subject) sameCallers(o *subject) bool {
	return s.issuer == o.issuer && s.subject == o.subject && slices.Equal(s.claims, o.claims) &&
		s.expression.source() == o.expression.source() &&
		bothOrNone(s.users, o.users) && bothOrNone(s.groups, o.groups) && bothOrNone(s.serviceAccounts, o.serviceAccounts)
}

func bothOrNone(a, b []string) bool {
	return len(a) == 0 && len(b) == 0 || share(a, b)
}
