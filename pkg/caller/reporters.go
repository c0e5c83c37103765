package caller

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	cellcast "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// Clusters are the registered cells.
type Clusters interface {
	// Cluster returns the row of the cell, which is not changed.
	Cluster(name string) (*registry.Cluster, bool)
}

// ReporterKeys knows where the keys of a cell's reporter are read.
type ReporterKeys interface {
	// Keys returns a key set for the cell's spec.reporter, which is set. It
	// reads nothing yet. It is asked once for each state of the row.
	Keys(cell *registry.Cluster) (KeySet, error)
}

// ReporterOptions say whose reports are believed.
type ReporterOptions struct {
	Clusters Clusters
	Keys     ReporterKeys
	// Audience is the one that a reporter's token must be issued for.
	Audience string
	// Clock tells the time; the real one by default.
	Clock clock.PassiveClock
}

// Reporters authenticates the agents of cells (ADR-009). The cell in the
// request's path chooses the keys, and its spec.reporter the issuer and the
// subject. So cells that share an issuer string can't report for each other,
// and both work.
type Reporters struct {
	options ReporterOptions

	mu    sync.Mutex
	cells map[string]cellKeys
}

var _ authenticator.Token = (*Reporters)(nil)

// cellKeys is a key set and the state of the row that it was made for.
type cellKeys struct {
	state cellState
	keys  KeySet
}

// cellState is all that a reporter's keys depend on.
type cellState struct {
	uid                types.UID
	endpoint, caBundle string
	audience           string
	reporter           registry.ClusterReporter
}

// NewReporters returns an authenticator that has read no keys yet.
func NewReporters(o ReporterOptions) *Reporters {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Reporters{options: o, cells: map[string]cellKeys{}}
}

// AuthenticateToken returns the *Reporter of the cell whose capacity the
// request in the context creates; any other request is refused. The error is a
// *Failure.
func (r *Reporters) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	info, ok := genericapirequest.RequestInfoFrom(ctx)
	if !ok || !isCapacity(info) || info.Verb != "create" {
		return nil, false, fail(ReasonVerb, "a reporter can only create %s/%s", capacityResource, capacitySubresource)
	}
	if failure := r.verify(ctx, info.Name, token); failure != nil {
		failure.Cell = info.Name
		return nil, false, failure
	}
	return &authenticator.Response{User: &Reporter{Cell: info.Name}}, true, nil
}

func (r *Reporters) verify(ctx context.Context, name, token string) *Failure {
	cell, ok := r.options.Clusters.Cluster(name)
	if !ok {
		r.forget(name)
		return fail(ReasonUnknownCell, "there is no such Cluster")
	}
	reporter := cell.Spec.Reporter
	if reporter == nil {
		return fail(ReasonNoReporter, "the Cluster has no spec.reporter, so nobody may report for it")
	}
	keys, err := r.keys(cell)
	if err != nil {
		return &Failure{Reason: ReasonKeysUnavailable, cause: err}
	}
	expect := expectation{issuer: reporter.Issuer, subject: reporter.Subject, audiences: []string{r.options.Audience}}
	_, failure := expect.verify(ctx, keys, token, r.options.Clock.Now)
	return failure
}

// keys returns the cell's key set, a new one when its row has changed.
func (r *Reporters) keys(cell *registry.Cluster) (KeySet, error) {
	state := cellState{
		uid:      cell.UID,
		endpoint: cell.Spec.Endpoint,
		caBundle: string(cell.Spec.CABundle),
		audience: cell.Spec.Trust.Audience,
		reporter: *cell.Spec.Reporter,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.cells[cell.Name]; ok && known.state == state {
		return known.keys, nil
	}
	keys, err := r.options.Keys.Keys(cell)
	if err != nil {
		return nil, err
	}
	r.cells[cell.Name] = cellKeys{state, keys}
	return keys, nil
}

func (r *Reporters) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.cells, name)
}

const (
	capacityResource    = "cells"
	capacitySubresource = "capacity"
)

// isCapacity says whether a request is about cells/capacity, whatever its verb
// or version.
func isCapacity(info *genericapirequest.RequestInfo) bool {
	return info.IsResourceRequest && info.APIGroup == cellcast.GroupName &&
		info.Resource == capacityResource && info.Subresource == capacitySubresource
}
