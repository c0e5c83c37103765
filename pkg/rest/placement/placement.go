// Package placement answers where a workload goes: the create-only storage
// behind placements.cellcast.io.
//
// The order is load-bearing. The caller was authenticated and allowed to ask
// before it gets here; then permission, eligibility and score, which the
// decision does in that order; and the mint last. Whatever comes of it is in
// the audit trail, and nothing of it is kept.
package placement

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/placement"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/registry"
	"cellcast.io/cellcast/pkg/rest/call"
	"cellcast.io/cellcast/pkg/rest/credential"
)

// Engine decides.
type Engine interface {
	// Place decides and reserves.
	Place(placement.Request, *placement.Permission, time.Time) (placement.Decision, *refusal.Refusal)
	// Decide decides and changes nothing.
	Decide(placement.Request, *placement.Permission, time.Time) (placement.Decision, *refusal.Refusal)
}

// Storage answers placements.
type Storage struct {
	// View returns the rows as they are now.
	View   func() *registry.View
	Engine Engine
	// Release takes back what was reserved for a placement that came to nothing.
	Release func(capacity.Reservation, time.Time)
	// Warm reports whether this replica has heard enough of the fleet.
	Warm   func(time.Time) bool
	Issuer *credential.Issuer
	// SeesAll reports whether the caller may see every cell.
	SeesAll func(context.Context) bool
	Audit   audit.Sink
	Now     func() time.Time
}

var (
	_ rest.Storage              = &Storage{}
	_ rest.Scoper               = &Storage{}
	_ rest.SingularNameProvider = &Storage{}
	_ rest.Creater              = &Storage{}
)

// New returns an empty Placement.
func (*Storage) New() runtime.Object { return &cellcastv1alpha1.Placement{} }

// Destroy releases nothing: the storage holds nothing.
func (*Storage) Destroy() {}

// NamespaceScoped is false: a placement belongs to no namespace of the hub.
func (*Storage) NamespaceScoped() bool { return false }

// GetSingularName returns "placement".
func (*Storage) GetSingularName() string { return "placement" }

// Create answers one placement. A dry run decides, reserves nothing and mints
// nothing.
func (s *Storage) Create(ctx context.Context, obj runtime.Object, _ rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	question, ok := obj.(*cellcastv1alpha1.Placement)
	if !ok {
		return nil, fmt.Errorf("a placement was expected, not %T", obj)
	}
	c, err := call.From(ctx, s.Now())
	if err != nil {
		return nil, err
	}
	record := c.Record(audit.EventPlacement)
	record.DryRun = options != nil && dryrun.IsDryRun(options.DryRun)

	answer, err := s.place(ctx, c, question, &record)
	if err != nil {
		return nil, c.Answer(ctx, err)
	}
	return answer, nil
}

// place decides, writes the decision to the audit trail, and mints.
func (s *Storage) place(ctx context.Context, c call.Call, question *cellcastv1alpha1.Placement, record *audit.Record) (*cellcastv1alpha1.Placement, error) {
	d, err := s.decide(c, question.Spec, record)
	call.End(record, err, c.Started, s.Now())
	s.Audit.Write(*record)
	if err != nil {
		return nil, err
	}
	answer := s.answer(ctx, c, question, d)
	if record.DryRun {
		return answer, nil
	}
	answer.Status.Credential, err = s.Issuer.Issue(ctx, c, d.issue)
	if err != nil {
		s.Release(d.Reservation, s.Now())
		return nil, err
	}
	return answer, nil
}

// decision is where the workload goes and what is to be issued for it.
type decision struct {
	placement.Decision
	issue credential.Issue
}

// decide runs permission, eligibility and score. Everything that the mint will
// need is settled here too, so that a dry run refuses what the real one would.
func (s *Storage) decide(c call.Call, spec cellcastv1alpha1.PlacementSpec, record *audit.Record) (decision, error) {
	request, ttl, refused := parse(spec)
	if refused != nil {
		return decision{}, refused
	}
	record.Workload = request.Workload // valid: what was sent for a name may be a secret
	view := s.View()
	governing, refused := view.Policies.Govern(c.Caller.Caller, request.Workload)
	if refused != nil {
		return decision{}, refused
	}
	p := governing.Policy
	record.Policy, record.Specificity, record.Strategy = p.Name, governing.Specificity, string(p.Strategy)
	scope, refused := p.Scope(c.Caller.Caller, request.Workload)
	if refused != nil {
		return decision{}, refused
	}
	if !s.Warm(c.Started) {
		return decision{}, refusal.New(refusal.PlacementUnavailable,
			"this hub replica has just started and hasn't heard from every cell yet; it clears within about a minute")
	}
	chosen, refused := s.choose(request, view.Permission(p), record)
	if refused != nil {
		return decision{}, refused
	}
	issue, refused := s.Issuer.Settle(credential.Issue{
		Cell: chosen.Cell, Policy: p, Workload: request.Workload, Scope: scope, TTL: ttl,
	})
	if refused != nil {
		s.Release(chosen.Reservation, s.Now())
		return decision{}, refused
	}
	return decision{chosen, issue}, nil
}

// choose asks the engine, and puts the whole trace into the audit record.
func (s *Storage) choose(request placement.Request, permission *placement.Permission, record *audit.Record) (placement.Decision, *refusal.Refusal) {
	ask := s.Engine.Place
	if record.DryRun {
		ask = s.Engine.Decide
	}
	request.Explain = true
	d, refused := ask(request, permission, s.Now())
	record.Candidates = candidates(d.Trace)
	if d.Cell != nil {
		record.Cell = d.Cell.Name
	}
	return d, refused
}

// parse turns the question into what the engine understands.
func parse(spec cellcastv1alpha1.PlacementSpec) (placement.Request, time.Duration, *refusal.Refusal) {
	if refused := policy.ParseWorkload(spec.Workload); refused != nil {
		return placement.Request{}, 0, refused
	}
	ttl, refused := policy.ParseTTL(spec.TTL)
	if refused != nil {
		return placement.Request{}, 0, refused
	}
	resources, refused := capacity.ParseAmounts("spec.resources", spec.Resources)
	if refused != nil {
		return placement.Request{}, 0, refused
	}
	return placement.Request{Workload: spec.Workload, Dark: spec.Dark, Resources: resources}, ttl, nil
}
