// Package credential issues what a placement, a named cell or a brought target
// is asked for: a short-lived token of one ServiceAccount in one place. Settle says what would
// be issued and refuses what can't be; Issue mints it and writes the audit
// record. The token goes into the answer and nowhere else, sealed where the
// caller sent a key; and it doesn't leave the hub when the audit trail can't
// be written.
package credential

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/tracing"
	"k8s.io/utils/ptr"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/mint"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/rest/call"
	"cellcast.io/cellcast/pkg/revocation"
)

// Place is where a credential is good: a cell, or a brought target.
type Place interface {
	// Name is the cell's, or target:<uid>.
	Name() string
	// Env is the value of the row's label env.
	Env() string
	// Describe says in an audit record which place it is.
	Describe(*audit.Record)
	// Client is what is asked for the token. Its error is a refusal.
	Client(context.Context) (mint.Cell, error)
}

// Issuer issues credentials.
type Issuer struct {
	// Cells gives the clients of cells.
	Cells Cells
	// Capacity knows which credentials a cell's agent can end.
	Capacity Capacity
	// Ceiling is the longest life of any credential.
	Ceiling time.Duration
	Audit   audit.Sink
	Now     func() time.Time
}

// Capacity is what is known of the cells' agents.
type Capacity interface {
	Describe(cell string, now time.Time) (capacity.Description, bool)
}

// Issue is what is to be issued.
type Issue struct {
	// Place is where.
	Place Place
	// Policy governs, for this workload. On a brought target there's neither.
	Policy   *policy.Policy
	Workload string
	// Scope is whose token.
	Scope policy.Scope
	// TTL is how long the credential shall live. Before Settle it's what the
	// caller asked for, zero for none in particular.
	TTL time.Duration
	// Delivery is how the caller gets it.
	Delivery Delivery

	// most is the longest life that is accepted.
	most time.Duration
}

// Settle settles how long the credential shall live. It refuses a life that
// policy and hub don't allow in the place, and a revocable credential where
// nobody there would end it.
func (i *Issuer) Settle(issue Issue) (Issue, *refusal.Refusal) {
	rules := policy.TTLRules{
		Cell:    issue.Place.Name(),
		Env:     issue.Place.Env(),
		Policy:  issue.Policy,
		Ceiling: i.Ceiling,
	}
	var refused *refusal.Refusal
	if issue.TTL, refused = policy.ResolveTTL(issue.TTL, rules); refused != nil {
		return Issue{}, refused
	}
	issue.most = max(policy.Bounds(rules).Max, mint.Floor)
	if issue.Scope.Revocable {
		return issue, i.endable(issue)
	}
	return issue, nil
}

// endable refuses where the cell's agent is silent, or doesn't end credentials
// in the namespace.
func (i *Issuer) endable(issue Issue) *refusal.Refusal {
	cell, namespace := issue.Place.Name(), issue.Scope.Namespace
	known, _ := i.Capacity.Describe(cell, i.Now())
	switch {
	case known.Health != cellcastv1alpha1.CapacityFresh:
		return refusal.New(refusal.MintUnavailable,
			"the agent of cell %s hasn't reported lately, so nobody there would end a revocable credential", cell)
	case !slices.Contains(known.RevocableNamespaces, namespace):
		return refusal.New(refusal.MintFailed,
			"the agent of cell %s doesn't end credentials in namespace %s: start it with --revocable-namespaces=%s; where it is, its log says what it lacks, or that too many are pending there", cell, namespace, namespace)
	default:
		return nil
	}
}

// Issue mints what was settled. The error is a refusal that says whose fault it
// is, or a fault; then nobody has the credential.
func (i *Issuer) Issue(ctx context.Context, c call.Call, issue Issue) (*cellcastv1alpha1.Credential, error) {
	ctx, span := tracing.Start(ctx, "mint", attribute.String("cell", issue.Place.Name()))
	defer span.End(slow)
	began := i.Now()
	record := issue.Record(c)
	end := func(err error) error {
		return call.Conclude(i.Audit, record, err, began, i.Now(), refusal.MintUnavailable)
	}
	cell, err := issue.Place.Client(ctx)
	if err != nil {
		return nil, end(err)
	}
	issue.Delivery = issue.Delivery.drawn()
	ask := issue.ask(c)
	if ask.Binding != nil {
		record.BoundTo = ask.Binding.Name
	}
	minted, err := mint.Mint(ctx, began, cell, ask)
	if err != nil {
		return nil, end(err)
	}
	record.ExpiresAt, record.TokenSHA256, record.JTI = minted.Expiration, minted.SHA256, minted.JTI
	record.RevokesAt = minted.RevokesAt
	answer := issue.answer(minted)
	err = issue.Delivery.deliver(ctx, minted.Token.Reveal(), answer)
	if err := end(err); err != nil {
		mint.Discard(ctx, cell, ask)
		return nil, err
	}
	return answer, nil
}

// slow is from when on a span is in the log too.
const slow = 5 * time.Second

// Record is the record of the mint, as far as it can be told beforehand.
func (issue Issue) Record(c call.Call) audit.Record {
	record := c.Record(audit.EventMint)
	issue.Place.Describe(&record)
	if issue.Policy != nil {
		record.Policy = issue.Policy.Name
	}
	record.Workload = issue.Workload
	record.Namespace, record.ServiceAccount = issue.Scope.Namespace, issue.Scope.ServiceAccountName
	record.TTLSeconds = int64(issue.TTL / time.Second)
	record.Sealed, record.Revocable = issue.Delivery.recipient != nil, issue.Scope.Revocable
	return record
}

// ask is what the place is asked for.
func (issue Issue) ask(c call.Call) mint.Ask {
	ask := mint.Ask{
		Scope: mint.Scope{
			Namespace:          issue.Scope.Namespace,
			ServiceAccountName: issue.Scope.ServiceAccountName,
			Audiences:          issue.Scope.Audiences,
		},
		TTL:     max(issue.TTL, mint.Floor),
		Ceiling: issue.most,
	}
	if issue.Scope.Revocable {
		ask.Binding = &mint.Binding{Name: revocation.SecretName(Owner(c), issue.Delivery.nonce), TTL: issue.TTL}
	}
	return ask
}

// answer is the credential as the caller gets it, without the token.
func (issue Issue) answer(minted mint.Credential) *cellcastv1alpha1.Credential {
	answer := &cellcastv1alpha1.Credential{
		ExpirationTimestamp: metav1.NewTime(minted.Expiration),
		Namespace:           issue.Scope.Namespace,
		ServiceAccountName:  issue.Scope.ServiceAccountName,
		Audiences:           issue.Scope.Audiences,
	}
	if !minted.RevokesAt.IsZero() {
		answer.RevokesAt = ptr.To(metav1.NewTime(minted.RevokesAt))
		answer.RevocationNonce = issue.Delivery.nonce
	}
	return answer
}

// Owner is whose credential it is: the one who may end it.
func Owner(c call.Call) revocation.Owner {
	return revocation.Owner{Class: c.Caller.Class.String(), User: c.Caller.User, Issuer: c.Caller.Issuer, Subject: c.Caller.Subject}
}
