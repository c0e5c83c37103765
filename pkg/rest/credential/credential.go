// Package credential issues what a placement, or a named cell, is asked for: a
// short-lived token of one ServiceAccount on one cell. Settle says what would
// be issued and refuses what can't be; Issue mints it and writes the audit
// record. The token goes into the answer and nowhere else.
package credential

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/mint"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/rest/call"
)

// Issuer issues credentials.
type Issuer struct {
	// Cell returns the client of a cell.
	Cell func(*registryv1alpha1.Cluster) (mint.Cell, error)
	// Ceiling is the longest life of any credential.
	Ceiling time.Duration
	Audit   audit.Sink
	Now     func() time.Time
}

// Issue is what is to be issued.
type Issue struct {
	// Cell is the row of the cell; it must not be changed.
	Cell *registryv1alpha1.Cluster
	// Policy governs, for this workload.
	Policy   *policy.Policy
	Workload string
	// Scope is whose token.
	Scope policy.Scope
	// TTL is the life to ask for. Before Settle it's what the caller asked for,
	// zero for none in particular.
	TTL time.Duration

	// most is the longest life that is accepted.
	most time.Duration
}

// Settle settles how long the credential shall live. It refuses a life that
// policy and hub don't allow on the cell.
func (i *Issuer) Settle(issue Issue) (Issue, *refusal.Refusal) {
	rules := policy.TTLRules{
		Cell:    issue.Cell.Name,
		Env:     issue.Cell.Labels[registryv1alpha1.LabelEnv],
		Policy:  issue.Policy,
		Ceiling: i.Ceiling,
	}
	var refused *refusal.Refusal
	if issue.TTL, refused = policy.ResolveTTL(issue.TTL, rules); refused != nil {
		return Issue{}, refused
	}
	issue.most = policy.Bounds(rules).Max
	return issue, nil
}

// Issue mints what was settled. The error is a refusal that says whose fault it is, or a fault.
func (i *Issuer) Issue(ctx context.Context, c call.Call, issue Issue) (*cellcastv1alpha1.Credential, error) {
	began := i.Now()
	record := c.Record(audit.EventMint)
	record.Workload, record.Policy, record.Cell = issue.Workload, issue.Policy.Name, issue.Cell.Name
	record.Namespace, record.ServiceAccount = issue.Scope.Namespace, issue.Scope.ServiceAccountName
	record.TTLSeconds = int64(issue.TTL / time.Second)

	minted, err := i.mint(ctx, issue, began)
	if err == nil {
		record.ExpiresAt, record.TokenSHA256, record.JTI = minted.Expiration, minted.SHA256, minted.JTI
	}
	call.End(&record, err, began, i.Now())
	i.Audit.Write(record)
	if err != nil {
		return nil, err
	}
	return &cellcastv1alpha1.Credential{
		Token:               minted.Token.Reveal(),
		ExpirationTimestamp: metav1.NewTime(minted.Expiration),
		Namespace:           issue.Scope.Namespace,
		ServiceAccountName:  issue.Scope.ServiceAccountName,
		Audiences:           issue.Scope.Audiences,
	}, nil
}

func (i *Issuer) mint(ctx context.Context, issue Issue, now time.Time) (mint.Credential, error) {
	cell, err := i.Cell(issue.Cell)
	if err != nil {
		return mint.Credential{}, refusal.New(refusal.MintFailed,
			"the hub can't make a client of cell %s from its row: check the endpoint and caBundle of its Cluster", issue.Cell.Name).Because(err)
	}
	return mint.Mint(ctx, now, cell, mint.Ask{
		Scope: mint.Scope{
			Namespace:          issue.Scope.Namespace,
			ServiceAccountName: issue.Scope.ServiceAccountName,
			Audiences:          issue.Scope.Audiences,
		},
		TTL:     issue.TTL,
		Ceiling: issue.most,
	})
}

// Reference is what a caller needs to reach the cell.
func Reference(cell *registryv1alpha1.Cluster) cellcastv1alpha1.CellReference {
	return cellcastv1alpha1.CellReference{Name: cell.Name, Endpoint: cell.Spec.Endpoint, CABundle: cell.Spec.CABundle}
}
