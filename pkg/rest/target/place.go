package target

import (
	"context"
	"errors"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/ptr"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/mint"
	"cellcast.io/cellcast/pkg/probe/contract"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/rest/credential"
)

// place is a target that a question was sent for: a credential.Place, once it
// was found and connected to.
type place struct {
	namespace, name string

	row *registryv1alpha1.ClusterTarget // nil until it was found

	client mint.Cell // nil until it was connected to
	at     Endpoint
}

var _ credential.Place = &place{}

// String is the row's namespace and name, as callers know the target.
func (p *place) String() string { return p.namespace + "/" + p.name }

// Name is target:<uid>.
func (p *place) Name() string { return registryv1alpha1.TargetAddress(p.row.UID) }

// Env is the value of the row's label env.
func (p *place) Env() string { return p.row.Labels[registryv1alpha1.LabelEnv] }

// Describe says in the record which target it is.
func (p *place) Describe(record *audit.Record) {
	record.Kind, record.Name = "ClusterTarget", p.String()
	if p.row != nil {
		record.Target = p.Name()
	}
}

// Client is the client that was connected.
func (p *place) Client(context.Context) (mint.Cell, error) { return outspoken{p.client, p}, nil }

// account is whose tokens are minted there.
func (p *place) account() (namespace, name string) {
	return p.row.Spec.Namespace, contract.ServiceAccountName(p.row.Spec)
}

// reference is what a caller needs to reach the target.
func (p *place) reference() cellcastv1alpha1.TargetReference {
	return cellcastv1alpha1.TargetReference{
		Namespace: p.namespace, Name: p.name, Address: p.Name(), Endpoint: p.at.Server, CABundle: p.at.CABundle,
	}
}

// probeCommand is what shows the state of the target, and mends it.
func (p *place) probeCommand() string {
	return "`kubectl cellcast probe " + p.name + " -n " + p.namespace + "`"
}

// outspoken is a client that says what went wrong in the words of a brought
// target: its owner mends it, and the Cluster and Role that one would look at on
// a cell aren't there.
type outspoken struct {
	mint.Cell
	place *place
}

// CreateToken asks for a token. Its error is a refusal.
func (o outspoken) CreateToken(ctx context.Context, namespace, account string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	answer, err := o.Cell.CreateToken(ctx, namespace, account, request)
	if err != nil {
		life := time.Duration(ptr.Deref(request.Spec.ExpirationSeconds, 0)) * time.Second
		return nil, o.place.refuse(namespace+"/"+account, life, err)
	}
	return answer, nil
}

// refuse says why the target's API gave no token. Its own words go to the log
// alone, as a cell's do.
func (p *place) refuse(account string, life time.Duration, err error) *refusal.Refusal {
	code, format, args := refusal.MintFailed, "", []any{p}
	switch failure.Of(err) {
	case failure.Unreachable:
		code, format = refusal.MintUnavailable, "the API of target %s can't be reached"
	case failure.Unavailable:
		code, format = refusal.MintUnavailable, "the API of target %s can't issue a token now"
	case failure.Interrupted:
		code, format = refusal.MintUnavailable, "the API of target %s didn't answer before the request ended"
	case failure.NoHubToken:
		return p.unread(err)
	case failure.Unauthenticated:
		code, format = refusal.TargetNotReady, "the API of target %s refuses the registered credential: put a fresh one where its spec.credentialRef says"
	case failure.Forbidden:
		format, args = "the registered credential of target %s may not create serviceaccounts/token for %s there: its Role must let it; %s prints what is missing", []any{p, account, p.probeCommand()}
	case failure.NotFound:
		format, args = "target %s has no ServiceAccount %s: create it there, or correct spec.serviceAccountName", []any{p, account}
	case failure.Rejected:
		format, args = "the API of target %s refused a token of %s for %s: check its admission policies on serviceaccounts/token", []any{p, life, account}
	case failure.Unexpected:
		format = "the API of target %s answered with something that isn't understood"
	default:
		format = "the API of target %s gave no token"
	}
	return refusal.New(code, format, args...).Because(err).RetriedAfter(failure.RetryAfter(err))
}

// adviser is an error that says to the owner of a target what is wrong with its
// credential, and what to do next.
type adviser interface {
	error
	Advice() string
}

// unread says why the registered credential can't be shown to the target.
func (p *place) unread(err error) *refusal.Refusal {
	refused := refusal.New(refusal.TargetNotReady,
		"the registered credential of target %s can't be read, or isn't a kubeconfig that cellcast takes; %s says which", p, p.probeCommand())
	if told, ok := errors.AsType[adviser](err); ok {
		refused = refusal.New(refusal.TargetNotReady, "the registered credential of target %s can't be read. %s", p, told.Advice())
	}
	return refused.Because(err)
}
