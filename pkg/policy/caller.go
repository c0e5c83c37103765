package policy

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// The claims of a token that have a field of their own.
const (
	claimIssuer  = "iss"
	claimSubject = "sub"
)

// Caller is who asks, as an authenticator established it. It is the same
// whether a pipeline came through the hub's API server or directly.
type Caller struct {
	// User and Groups are the names that the authenticator gave. Policies match
	// them for callers without an Issuer alone, because a pipeline's depend on
	// the door that it came through. Expressions see them for every caller.
	User   string
	Groups []string
	// Issuer and Subject are the iss and sub of the caller's token. An Issuer
	// is set for pipelines and for nobody else.
	Issuer, Subject string
	// Claims are the values of the caller's claims by the name that follows
	// claims.cellcast.io/. Issuer and Subject win over entries named iss and
	// sub, so it makes no difference whether these are here too.
	Claims map[string][]string
}

// IsPipeline reports whether the caller is a pipeline; otherwise it is a
// person or a ServiceAccount that the hub's own API server authenticated.
func (c Caller) IsPipeline() bool { return c.Issuer != "" }

// String names the caller by its identity: issuer and subject of a pipeline,
// the user name of anyone else. It never holds another claim or a group, so
// that a message or a log line that a Caller gets into gives none away.
func (c Caller) String() string {
	if c.IsPipeline() {
		return fmt.Sprintf("subject %s of issuer %s", quote(c.Subject), quote(c.Issuer))
	}
	return "user " + quote(c.User)
}

// hasClaim reports whether one of the values of the claim is exactly this.
func (c *Caller) hasClaim(name, value string) bool {
	switch name {
	case claimIssuer:
		return c.Issuer == value
	case claimSubject:
		return c.Subject == value
	default:
		return slices.Contains(c.Claims[name], value)
	}
}

// maxQuoted is how many bytes of a caller's text a message repeats.
const maxQuoted = 256

// quote is the text in quotes, cut at maxQuoted bytes.
func quote(s string) string { return quoteAtMost(s, maxQuoted) }

func quoteAtMost(s string, n int) string {
	if len(s) <= n {
		return strconv.Quote(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strconv.Quote(s[:n]) + "..."
}
