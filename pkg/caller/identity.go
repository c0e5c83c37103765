// Package caller says who is asking: a user of the hub, a pipeline, a reporter
// or another replica of the hub.
//
// The class of a caller is the Go type of its user.Info, and only the
// authenticators of this package make those types: no group, header or claim
// that a client brings can change it. Everyone whom the hub's own API server
// authenticated is a hub user, whatever the name.
//
// Pipelines prove themselves by a JWT of an issuer in an
// AuthenticationConfiguration file (Pipelines), reporters by a token that the
// keys of their own cell have signed (Reporters), replicas by a token of the
// hub's own ServiceAccount (Peers). All promise the same of a token that isn't
// good: it is refused with a Failure that says why in a word of a closed set;
// an unknown issuer costs no network call; and no URL that a token names is
// ever fetched.
package caller

import (
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"

	"cellcast.io/cellcast/pkg/policy"
)

// Class is the kind of a caller, by the authenticator that ran.
type Class string

// The classes. The zero value is nobody.
const (
	// ClassHubUser is a person or ServiceAccount of the hub, or a pipeline that
	// the hub's own API server authenticated.
	ClassHubUser Class = "HubUser"
	// ClassPipeline is a pipeline that came to the direct port.
	ClassPipeline Class = "Pipeline"
	// ClassReporter is the agent of a cell.
	ClassReporter Class = "Reporter"
	// ClassPeer is another replica of the hub.
	ClassPeer Class = "Peer"
)

// String is the class's name, for the audit record.
func (c Class) String() string { return string(c) }

// Identity is a caller as the rest of the hub sees it.
type Identity struct {
	Class Class
	// Caller is what policies match.
	policy.Caller
	// Cell is the cell that a reporter may report for; empty for the others.
	Cell string
}

// ClaimPrefix begins the extra keys that hold a caller's claims.
const ClaimPrefix = "claims.cellcast.io/"

// The extra keys that hold the iss and sub claims.
const (
	ClaimIssuer  = ClaimPrefix + "iss"
	ClaimSubject = ClaimPrefix + "sub"
)

// From returns the identity of an authenticated user; of nil it's the zero
// Identity, which has no class. A hub user has an issuer and a subject when
// its extra keys hold exactly one value of each, as those of a pipeline do
// that came through the hub's API server.
func From(u user.Info) Identity {
	if u == nil {
		return Identity{}
	}
	id := Identity{Class: ClassHubUser, Caller: policy.Caller{User: u.GetName(), Groups: u.GetGroups()}}
	switch u := u.(type) {
	case *Reporter:
		id.Class, id.Cell = ClassReporter, u.Cell
		return id
	case *Peer:
		id.Class = ClassPeer
		return id
	case *Pipeline:
		id.Class = ClassPipeline
	}
	extra := u.GetExtra()
	id.Issuer, id.Subject = only(extra[ClaimIssuer]), only(extra[ClaimSubject])
	id.Claims = map[string][]string{}
	for key, values := range extra {
		if name, ok := strings.CutPrefix(key, ClaimPrefix); ok && name != "" {
			id.Claims[name] = values
		}
	}
	return id
}

func only(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	return ""
}
