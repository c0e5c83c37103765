package caller

import (
	"maps"

	"k8s.io/apiserver/pkg/authentication/user"
)

// The groups that the hub puts callers into, besides system:authenticated, which
// the API server expects of everyone who was: its priority and fairness has a
// place for nobody else.
const (
	GroupPipelines = "cellcast.io:pipelines"
	GroupReporters = "cellcast.io:reporters"
	GroupPeers     = "cellcast.io:peers"
)

const (
	pipelinePrefix = "pipeline:"
	reporterPrefix = "cellcast.io:reporter:"
	peerPrefix     = "cellcast.io:peer:"
)

// Pipeline is a pipeline that proved itself on the direct port. Its name and
// groups for RBAC carry the issuer, so that no issuer can yield the name or
// group of another's pipeline, of a hub user, or of Kubernetes' own. An issuer
// holds no '#', so the first one ends it.
type Pipeline struct {
	// Issuer is the issuer as configured, and Subject the token's sub.
	Issuer, Subject string
	// Name and Groups are what the issuer's claimMappings yield; UID too, which
	// may be empty.
	Name   string
	Groups []string
	UID    string
	// Extra are the mapped claims, by extra key, without iss and sub; and the
	// token's jti, by Kubernetes' own key.
	Extra map[string][]string
}

var _ user.Info = (*Pipeline)(nil)

// GetName is pipeline:<issuer>#<name>.
func (p *Pipeline) GetName() string { return p.qualified(p.Name) }

// GetUID is the mapped UID.
func (p *Pipeline) GetUID() string { return p.UID }

// GetGroups is pipeline:<issuer>#<group> for each group, cellcast.io:pipelines
// and system:authenticated.
func (p *Pipeline) GetGroups() []string {
	groups := make([]string, 0, len(p.Groups)+2)
	for _, group := range p.Groups {
		groups = append(groups, p.qualified(group))
	}
	return append(groups, GroupPipelines, user.AllAuthenticated)
}

// GetExtra is Extra with iss and sub.
func (p *Pipeline) GetExtra() map[string][]string {
	extra := maps.Clone(p.Extra)
	if extra == nil {
		extra = map[string][]string{}
	}
	extra[ClaimIssuer] = []string{p.Issuer}
	extra[ClaimSubject] = []string{p.Subject}
	return extra
}

func (p *Pipeline) qualified(name string) string { return pipelinePrefix + p.Issuer + "#" + name }

// Reporter is the agent of a cell. It may report that cell's capacity and do
// nothing else.
type Reporter struct {
	// Cell is the name of the Cluster whose reporter it is.
	Cell string
}

var _ user.Info = (*Reporter)(nil)

// GetName is cellcast.io:reporter:<cell>.
func (r *Reporter) GetName() string { return reporterPrefix + r.Cell }

// GetUID is empty.
func (r *Reporter) GetUID() string { return "" }

// GetGroups is cellcast.io:reporters and system:authenticated.
func (r *Reporter) GetGroups() []string { return []string{GroupReporters, user.AllAuthenticated} }

// GetExtra is empty.
func (r *Reporter) GetExtra() map[string][]string { return nil }

// Peer is another replica of the hub. It may hand over what it heard and placed
// and do nothing else: it has not the name that RBAC grants the hub's rights to.
type Peer struct {
	// Subject is the subject of its token, which is the hub's own.
	Subject string
}

var _ user.Info = (*Peer)(nil)

// GetName is cellcast.io:peer:<subject>.
func (p *Peer) GetName() string { return peerPrefix + p.Subject }

// GetUID is empty.
func (p *Peer) GetUID() string { return "" }

// GetGroups is cellcast.io:peers and system:authenticated.
func (p *Peer) GetGroups() []string { return []string{GroupPeers, user.AllAuthenticated} }

// GetExtra is empty.
func (p *Peer) GetExtra() map[string][]string { return nil }
