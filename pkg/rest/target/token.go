package target

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/mint"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/rest/call"
	"cellcast.io/cellcast/pkg/rest/credential"
	"cellcast.io/cellcast/pkg/rest/resource"
)

// Targets gives the clients of targets.
type Targets interface {
	// Client returns the client of the target, which shows the registered
	// credential, and where it goes. It may read the credential for that.
	Client(ctx context.Context, row *registryv1alpha1.ClusterTarget) (mint.Cell, Endpoint, error)
}

// Endpoint is where the API of a target is.
type Endpoint struct {
	// Server is its https URL.
	Server string
	// CABundle is the PEM certificates to check it by.
	CABundle []byte
}

// TokenStorage mints for targets.
type TokenStorage struct {
	resource.ClusterTarget

	Rows    Rows
	Targets Targets
	Issuer  *credential.Issuer

	turns turns
}

var (
	_ rest.Storage              = &TokenStorage{}
	_ rest.Scoper               = &TokenStorage{}
	_ rest.SingularNameProvider = &TokenStorage{}
	_ rest.NamedCreater         = &TokenStorage{}
)

// New returns an empty TargetToken.
func (*TokenStorage) New() runtime.Object { return &cellcastv1alpha1.TargetToken{} }

// Create mints a credential on the named target. A dry run only checks: it
// neither reads the registered credential nor asks the target, so its answer
// doesn't say where the target is. There is one audit record, whether it comes
// to a mint or not.
func (s *TokenStorage) Create(ctx context.Context, name string, obj runtime.Object, _ rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	question, ok := obj.(*cellcastv1alpha1.TargetToken)
	if !ok {
		return nil, fmt.Errorf("a request for a token was expected, not %T", obj)
	}
	c, err := call.From(ctx, s.Issuer.Now())
	if err != nil {
		return nil, err
	}
	p := &place{namespace: genericapirequest.NamespaceValue(ctx), name: name}
	dry := options != nil && dryrun.IsDryRun(options.DryRun)
	issue, err := s.check(ctx, c, p, question)
	if err == nil && !dry {
		if refused := s.turns.take(p.namespace); refused != nil {
			err = refused
		} else {
			defer s.turns.giveBack(p.namespace)
			err = s.connect(ctx, p)
		}
	}
	var minted *cellcastv1alpha1.Credential
	if err != nil || dry {
		record := issue.Record(c)
		record.DryRun = dry
		err = call.Conclude(s.Issuer.Audit, record, err, c.Started, s.Issuer.Now(), refusal.MintUnavailable)
	} else {
		minted, err = s.Issuer.Issue(ctx, c, issue)
	}
	if err != nil {
		return nil, c.Answer(ctx, err)
	}
	return &cellcastv1alpha1.TargetToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.name},
		Spec:       question.Spec,
		Status:     cellcastv1alpha1.TargetTokenStatus{RequestID: c.ID, Target: p.reference(), Credential: minted},
	}, nil
}

// check says what is to be issued. Where nothing is, it says so as far as is
// known, for the record.
func (s *TokenStorage) check(ctx context.Context, c call.Call, p *place, question *cellcastv1alpha1.TargetToken) (credential.Issue, error) {
	issue := credential.Issue{Place: p}
	ttl, refused := policy.ParseTTL(question.Spec.TTL)
	if refused != nil {
		return issue, refused
	}
	delivery, refused := credential.ParseDelivery(question.Spec.Recipient, "")
	if refused != nil {
		return issue, refused
	}
	var err error
	if p.row, err = find(ctx, s.Rows, p, question.Name); err != nil {
		return issue, err
	}
	if owner := p.row.Spec.Owner; !owner.Covers(c.Caller.User, c.Caller.Groups) {
		return issue, refusal.New(refusal.NotOwner, "target %s is owned by %q, which doesn't cover user %q", p, owner, c.Caller.User)
	}
	issue.Delivery = delivery
	issue.Scope.Namespace, issue.Scope.ServiceAccountName = p.account()
	if refused := p.usable(); refused != nil {
		return issue, refused
	}
	if refused := p.bound(ttl, s.Issuer.Ceiling); refused != nil {
		return issue, refused
	}
	issue.TTL = ttl
	settled, refused := s.Issuer.Settle(issue)
	if refused != nil {
		return issue, refused
	}
	return settled, nil
}

// usable refuses a target that isn't proven, or whose credential may mint no
// tokens.
func (p *place) usable() *refusal.Refusal {
	switch why := Unready(p.row); {
	case why == deleting:
		return refusal.New(refusal.TargetNotReady, "target %s can't be used: %s", p, why)
	case why != "":
		return refusal.New(refusal.TargetNotReady, "target %s can't be used now: %s; %s says what is missing, and what mends it", p, why, p.probeCommand())
	case !slices.Contains(p.row.Status.Capabilities, registryv1alpha1.CapabilityTokens):
		namespace, account := p.account()
		return refusal.New(refusal.TargetNotReady,
			"target %s is Ready, but the registered credential may not create serviceaccounts/token of %s in namespace %s there: grant it that; %s prints the Role, and sees that it's there",
			p, account, namespace, p.probeCommand())
	default:
		return nil
	}
}

// bound refuses a life that the label env and the hub don't allow. The rules are
// the policies', and here is no policy to name.
func (p *place) bound(ttl, ceiling time.Duration) *refusal.Refusal {
	most := policy.Bounds(policy.TTLRules{Env: p.Env(), Ceiling: ceiling}).Max
	switch {
	case most < policy.Floor:
		return refusal.New(refusal.MintFailed,
			"%s is the most that the hub allows, and Kubernetes issues no token for less than %s; ask the platform team to raise the hub's --token-max-ttl", most, policy.Floor)
	case ttl > most:
		return refusal.Invalid("spec.ttl",
			"%s is longer than %s, the most that the hub and the label %s=%q of target %s allow; ask for less or leave ttl out",
			ttl, most, registryv1alpha1.LabelEnv, p.Env(), p)
	default:
		return nil
	}
}

// connect gets the client of the target.
func (s *TokenStorage) connect(ctx context.Context, p *place) error {
	var err error
	p.client, p.at, err = s.Targets.Client(ctx, p.row)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return refusal.New(refusal.MintUnavailable,
			"the registered credential of target %s wasn't read before the request ended", p).Because(err)
	default:
		return p.unread(err)
	}
}
