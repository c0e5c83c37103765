// Package token mints for a cell that the caller names: the create-only
// storage behind cells/token. It gives a decision that was made before a fresh
// credential. Permission and state are checked as for a placement; capacity is
// not, for nothing new is placed.
//
// Naming the cell is choosing it, so it needs a policy that says so. Whether a
// cell exists, and in which state it is, is told to those alone who may reach
// it.
package token

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/placement"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/registry"
	"cellcast.io/cellcast/pkg/rest/call"
	"cellcast.io/cellcast/pkg/rest/credential"
	"cellcast.io/cellcast/pkg/rest/resource"
)

// Engine knows which cells a policy permits and which take placements.
type Engine interface {
	Admit(cell string, dark bool, p *placement.Permission) (*registryv1alpha1.Cluster, *refusal.Refusal)
}

// Storage mints for named cells.
type Storage struct {
	resource.Cell

	// View returns the rows as they are now.
	View   func() *registry.View
	Engine Engine
	Issuer *credential.Issuer
	Audit  audit.Sink
	Now    func() time.Time
}

var (
	_ rest.Storage              = &Storage{}
	_ rest.Scoper               = &Storage{}
	_ rest.SingularNameProvider = &Storage{}
	_ rest.NamedCreater         = &Storage{}
)

// New returns an empty CellToken.
func (*Storage) New() runtime.Object { return &cellcastv1alpha1.CellToken{} }

// Create mints a credential for the named cell. A dry run only checks.
func (s *Storage) Create(ctx context.Context, name string, obj runtime.Object, _ rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	question, ok := obj.(*cellcastv1alpha1.CellToken)
	if !ok {
		return nil, fmt.Errorf("a request for a token was expected, not %T", obj)
	}
	c, err := call.From(ctx, s.Now())
	if err != nil {
		return nil, err
	}
	record := c.Record(audit.EventPlacement)
	record.Cell = name
	record.DryRun = options != nil && dryrun.IsDryRun(options.DryRun)

	admitted, err := s.check(c, name, question, &record)
	if err = call.Conclude(s.Audit, record, err, c.Started, s.Now(), refusal.PlacementUnavailable); err != nil {
		return nil, c.Answer(ctx, err)
	}
	answer := &cellcastv1alpha1.CellToken{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       question.Spec,
		Status:     cellcastv1alpha1.CellTokenStatus{RequestID: c.ID, Cell: credential.Reference(admitted.cell), Policy: admitted.issue.Policy.Name},
	}
	if !record.DryRun {
		if answer.Status.Credential, err = s.Issuer.Issue(ctx, c, admitted.issue); err != nil {
			return nil, c.Answer(ctx, err)
		}
	}
	return answer, nil
}

// admission is the cell that was named, and what is to be issued for it.
type admission struct {
	cell  *registryv1alpha1.Cluster
	issue credential.Issue
}

// check runs permission and state for the one cell.
func (s *Storage) check(c call.Call, name string, question *cellcastv1alpha1.CellToken, record *audit.Record) (admission, error) {
	spec := question.Spec
	if question.Name != "" && question.Name != name {
		return admission{}, refusal.Invalid("metadata.name", "is %q, and the request was sent for cell %q: name one cell", question.Name, name)
	}
	if refused := policy.ParseWorkload(spec.Workload); refused != nil {
		return admission{}, refused
	}
	ttl, refused := policy.ParseTTL(spec.TTL)
	if refused != nil {
		return admission{}, refused
	}
	delivery, refused := credential.ParseDelivery(spec.Recipient, spec.RevocationNonce)
	if refused != nil {
		return admission{}, refused
	}
	record.Workload = spec.Workload // valid: what was sent for a name may be a secret
	record.Dark = spec.Dark
	view := s.View()
	governing, refused := view.Policies.Govern(c.Caller.Caller, spec.Workload)
	if refused != nil {
		return admission{}, refused
	}
	p := governing.Policy
	record.Policy, record.Specificity = p.Name, governing.Specificity
	if !p.AllowCellSelection {
		return admission{}, refusal.New(refusal.CellChoiceNotPermitted,
			"policy %q doesn't let its callers name the cell; create a placement and take the cell that it answers", p.Name)
	}
	cell, refused := s.Engine.Admit(name, spec.Dark, view.Permission(p))
	if refused != nil {
		return admission{}, refused
	}
	scope, refused := p.Scope(c.Caller.Caller, spec.Workload)
	if refused != nil {
		return admission{}, refused
	}
	issue, refused := s.Issuer.Settle(credential.Issue{
		Place: s.Issuer.Cells.At(cell), Policy: p, Workload: spec.Workload, Scope: scope, TTL: ttl, Delivery: delivery,
	})
	if refused != nil {
		return admission{}, refused
	}
	return admission{cell, issue}, nil
}
