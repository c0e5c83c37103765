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
	"k8s.io/component-base/tracing"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/placement"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/registry"
	"cellcast.io/cellcast/pkg/rest/call"
	"cellcast.io/cellcast/pkg/rest/credential"
	"cellcast.io/cellcast/pkg/rest/resource"
)

// Engine decides.
type Engine interface {
	// Place decides and reserves.
	Place(placement.Request, *placement.Permission, time.Time) (placement.Decision, *refusal.Refusal)
	// Decide decides and changes nothing.
	Decide(placement.Request, *placement.Permission, time.Time) (placement.Decision, *refusal.Refusal)
}

// Relay tells the other replicas. It doesn't wait for them.
type Relay interface {
	Reserve(capacity.Reservation)
	Release(capacity.Reservation)
}

// Storage answers placements.
type Storage struct {
	resource.Placement

	// View returns the rows as they are now.
	View   func() *registry.View
	Engine Engine
	// Release takes back what was reserved for a placement that came to nothing.
	Release func(capacity.Reservation, time.Time)
	// Relay tells the other replicas what was reserved and taken back.
	Relay Relay
	// Unreachable are the cells that can't be asked for a credential now.
	Unreachable func() []string
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
	d, err := s.decide(ctx, c, question.Spec, record)
	call.End(record, err, c.Started, s.Now())
	if lost := s.Audit.Write(*record); lost != nil && err == nil {
		s.release(d.Reservation)
		// What was ruled out stays so, whatever stance the caller has.
		err = call.Unaudited(refusal.PlacementUnavailable, lost).WithCandidates(d.Trace.Reachable())
	}
	if err != nil {
		return nil, err
	}
	answer := s.answer(ctx, c, question, d)
	if record.DryRun {
		return answer, nil
	}
	s.Relay.Reserve(d.Reservation)
	answer.Status.Credential, err = s.Issuer.Issue(ctx, c, d.issue)
	if err != nil {
		s.release(d.Reservation)
		s.Relay.Release(d.Reservation)
		return nil, elsewhere(err, d.Trace)
	}
	return answer, nil
}

// elsewhere advises to ask again soon where the mint failed for the cell's own
// sake, and another one is there to be chosen.
func elsewhere(err error, trace *placement.Trace) error {
	r := refusal.As(err)
	if r == nil || !trace.HasAlternative() {
		return err
	}
	switch failure.Of(err) {
	case failure.Unreachable, failure.Unavailable:
		return r.RetriedAfter(time.Second)
	default: // it would be the same elsewhere, or stays
		return err
	}
}

// release takes back what Place reserved; a dry run reserved nothing.
func (s *Storage) release(r capacity.Reservation) {
	if r.Cell != "" {
		s.Release(r, s.Now())
	}
}

// decision is where the workload goes and what is to be issued for it.
type decision struct {
	placement.Decision
	issue credential.Issue
}

// decide runs permission, eligibility and score. Everything that the mint will
// need is settled here too, so that a dry run refuses what the real one would.
func (s *Storage) decide(ctx context.Context, c call.Call, spec cellcastv1alpha1.PlacementSpec, record *audit.Record) (decision, error) {
	q, refused := parse(spec)
	if refused != nil {
		return decision{}, refused
	}
	record.Workload = spec.Workload // valid: what was sent for a name may be a secret
	record.Dark = spec.Dark
	permission, issue, refused := s.permit(ctx, c, q, record)
	if refused != nil {
		return decision{}, refused
	}
	if !s.Warm(c.Started) {
		return decision{}, s.cold(q.request, permission, record)
	}
	q.request.Unreachable = s.Unreachable()
	for tries := 0; ; tries++ {
		chosen, refused := s.choose(ctx, q.request, permission, record)
		if refused != nil {
			return decision{}, refused
		}
		issue.Place = s.Issuer.Cells.At(chosen.Cell)
		settled, refused := s.Issuer.Settle(issue)
		if refused == nil {
			return decision{chosen, settled}, nil
		}
		s.release(chosen.Reservation)
		// A cell whose agent wouldn't end the credential must not stand in the way
		// of one whose agent would.
		if refused.Code == refusal.InvalidRequest || tries == maxAlternatives || !chosen.Trace.HasAlternative() {
			return decision{}, refused
		}
		q.request.Unreachable = append(q.request.Unreachable, chosen.Cell.Name)
	}
}

// maxAlternatives is how many cells more are tried, of which no credential can be
// had.
const maxAlternatives = 3

// permit finds the policy that governs, which cells it permits, and what would
// be issued on one of them.
func (s *Storage) permit(ctx context.Context, c call.Call, q question, record *audit.Record) (*placement.Permission, credential.Issue, *refusal.Refusal) {
	_, span := tracing.Start(ctx, "filter")
	defer span.End(slow)
	view := s.View()
	governing, refused := view.Policies.Govern(c.Caller.Caller, q.request.Workload)
	if refused != nil {
		return nil, credential.Issue{}, refused
	}
	p := governing.Policy
	record.Policy, record.Specificity, record.Strategy = p.Name, governing.Specificity, string(p.Strategy)
	scope, refused := p.Scope(c.Caller.Caller, q.request.Workload)
	if refused != nil {
		return nil, credential.Issue{}, refused
	}
	return view.Permission(p), credential.Issue{
		Policy: p, Workload: q.request.Workload, Scope: scope, TTL: q.ttl, Delivery: q.delivery,
	}, nil
}

// cold is the refusal of a replica that hasn't heard from the fleet yet. What
// doesn't need a report is settled all the same: what will stay refused, and
// which cells permission and state rule out.
func (s *Storage) cold(request placement.Request, permission *placement.Permission, record *audit.Record) *refusal.Refusal {
	request.Explain = true
	d, refused := s.Engine.Decide(request, permission, s.Now())
	record.Candidates = candidates(d.Trace)
	if refused != nil && !refused.Code.Meaning().MayClear {
		return refused
	}
	refused = refusal.New(refusal.PlacementUnavailable,
		"this hub replica has just started and hasn't heard from every cell yet; it clears within about a minute")
	if d.Trace == nil {
		return refused
	}
	return refused.WithCandidates(d.Trace.Reachable())
}

// choose asks the engine, and puts the whole trace into the audit record.
func (s *Storage) choose(ctx context.Context, request placement.Request, permission *placement.Permission, record *audit.Record) (placement.Decision, *refusal.Refusal) {
	_, span := tracing.Start(ctx, "score")
	defer span.End(slow)
	ask := s.Engine.Place
	if record.DryRun {
		ask = s.Engine.Decide
	}
	request.Explain = true
	d, refused := ask(request, permission, s.Now())
	record.Candidates = candidates(d.Trace)
	switch {
	case d.Cell != nil:
		record.Cell, record.Confidence = d.Cell.Name, string(d.Confidence)
	case refused != nil && d.Trace != nil:
		refused = refused.WithCandidates(d.Trace.Reachable())
	}
	return d, refused
}

// slow is from when on a span is in the log too.
const slow = time.Second
