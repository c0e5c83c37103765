package stanza

import (
	"fmt"
	"regexp"
	"strings"
)

// claimPrefix begins the keys under which the hub keeps claims. It's
// caller.ClaimPrefix, whose package the client doesn't link; a test compares.
const claimPrefix = "claims.cellcast.io/"

// kind is what a claim's value is.
type kind int

// The kinds. What the hub keeps of a claim is one text, or a list of them.
const (
	text kind = iota
	number
	flag // a boolean, or a text that reads like one
	list
)

// claim is one that policies shall see. Any may be missing, or null.
type claim struct {
	// path are the names from the outermost claim to the innermost.
	path []string
	kind kind
}

func texts(names ...string) []claim {
	var claims []claim
	for _, name := range names {
		claims = append(claims, claim{path: []string{name}})
	}
	return claims
}

// key is the claim's name as a policy has it, behind the prefix. A nested one
// has its parents' names before it.
func (c claim) key() string { return claimPrefix + strings.Join(c.path, "/") }

// expression is CEL that yields the text, or the list; nothing, which is "",
// null or [], leaves the key out.
func (c claim) expression() string {
	value := "claims"
	for _, name := range c.path {
		value += optional(name)
	}
	switch c.kind {
	case number:
		// Numbers come as floating point, and a long one would read 1.2e+07.
		return value + `.orValue(null) == null ? "" : string(int(` + value + `.value()))`
	case flag:
		return value + `.orValue(null) == null ? "" : string(` + value + `.value())`
	case list:
		return value + `.orValue([])`
	case text:
		return value + `.orValue("")`
	default:
		panic(fmt.Sprintf("claim %s is of kind %d, which there isn't", c.key(), c.kind))
	}
}

// identifier is what CEL takes behind a dot.
var identifier = regexp.MustCompile(`^[a-z_]+$`)

func optional(name string) string {
	if identifier.MatchString(name) {
		return ".?" + name
	}
	return `[?"` + name + `"]`
}
