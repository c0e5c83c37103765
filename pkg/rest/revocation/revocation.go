// Package revocation ends revocable credentials: the create-only storage behind
// cells/revocation. The hub keeps no list of what it issued. The Secret that a
// credential is bound to has a name that follows from the caller and a nonce,
// so to ask for it is to have been given the credential, and no other caller
// comes to that name.
//
// Neither policy nor state of the cell matter: whoever may no longer deploy
// must still be able to hand back. Where nothing was to be ended, whether the
// cell exists is told to those alone who may reach it.
package revocation

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/klog/v2"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/mint"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/registry"
	"cellcast.io/cellcast/pkg/rest/call"
	"cellcast.io/cellcast/pkg/rest/credential"
	"cellcast.io/cellcast/pkg/rest/resource"
	"cellcast.io/cellcast/pkg/revocation"
)

// Storage ends credentials.
type Storage struct {
	resource.Cell

	// View returns the rows as they are now.
	View  func() *registry.View
	Cells credential.Cells
	// Strangers bounds the calls to cells for callers who don't reach them: they
	// share the cells' attention with the mints.
	Strangers chan struct{}
	// SeesAll reports whether the caller may see every cell.
	SeesAll func(context.Context) bool
	Audit   audit.Sink
	Now     func() time.Time
}

var (
	_ rest.Storage              = &Storage{}
	_ rest.Scoper               = &Storage{}
	_ rest.SingularNameProvider = &Storage{}
	_ rest.NamedCreater         = &Storage{}
)

// New returns an empty CellRevocation.
func (*Storage) New() runtime.Object { return &cellcastv1alpha1.CellRevocation{} }

// Create ends a credential of the named cell. A dry run only checks.
func (s *Storage) Create(ctx context.Context, name string, obj runtime.Object, _ rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	question, ok := obj.(*cellcastv1alpha1.CellRevocation)
	if !ok {
		return nil, fmt.Errorf("a revocation was expected, not %T", obj)
	}
	c, err := call.From(ctx, s.Now())
	if err != nil {
		return nil, err
	}
	record := c.Record(audit.EventRevocation)
	record.Cell = name
	record.DryRun = options != nil && dryrun.IsDryRun(options.DryRun)
	result, err := s.revoke(ctx, c, name, question, &record)
	// What is ended stays ended, whether or not the trail took it.
	if err = call.Conclude(s.Audit, record, err, c.Started, s.Now(), refusal.MintUnavailable); err != nil {
		return nil, c.Answer(ctx, err)
	}
	return &cellcastv1alpha1.CellRevocation{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       question.Spec,
		Status:     cellcastv1alpha1.CellRevocationStatus{RequestID: c.ID, Result: result},
	}, nil
}

func (s *Storage) revoke(ctx context.Context, c call.Call, name string, question *cellcastv1alpha1.CellRevocation, record *audit.Record) (cellcastv1alpha1.RevocationResult, error) {
	spec := question.Spec
	if question.Name != "" && question.Name != name {
		return "", refusal.Invalid("metadata.name", "is %q, and the request was sent for cell %q: name one cell", question.Name, name)
	}
	if len(validation.IsDNS1123Label(spec.Namespace)) > 0 {
		return "", refusal.Invalid("spec.namespace", "must be the namespace of the credential, as its answer had it")
	}
	if refused := revocation.ParseNonce("spec.revocationNonce", spec.RevocationNonce); refused != nil {
		return "", refused
	}
	record.Namespace = spec.Namespace
	view := s.View()
	row, ok := view.Cluster(name)
	reaches := ok && (view.Reaches(c.Caller.Caller, row) || s.SeesAll(ctx))
	if !reaches {
		// Whoever it is may try out names and nonces: not all at once.
		select {
		case s.Strangers <- struct{}{}:
			defer func() { <-s.Strangers }()
		default:
			return "", refusal.New(refusal.RateLimited, "too many revocations are under way for callers who reach no such cell")
		}
	}
	if !ok {
		return "", notFound(name)
	}
	found, err := s.end(ctx, c, row, spec, record)
	switch {
	case found:
		record.Revoked = true
		return cellcastv1alpha1.RevocationRevoked, nil
	case !reaches:
		s.keep(ctx, c, record, err)
		return "", notFound(name)
	case failure.Of(err) == failure.Forbidden:
		// Which namespaces are revocable is nobody's business.
		s.keep(ctx, c, record, err)
		return cellcastv1alpha1.RevocationNotFound, nil
	case err != nil:
		return "", err
	default:
		return cellcastv1alpha1.RevocationNotFound, nil
	}
}

// keep puts what the caller isn't told into the log, and into the trail that
// there was something.
func (s *Storage) keep(ctx context.Context, c call.Call, record *audit.Record, err error) {
	if err == nil {
		return
	}
	record.Message = "not ended: " + string(failure.Of(err))
	klog.FromContext(ctx).Info("A credential was not ended", "request", c.ID, "cell", record.Cell, "err", err)
}

// end deletes what the credential is bound to, and reports whether it was there.
func (s *Storage) end(ctx context.Context, c call.Call, row *registryv1alpha1.Cluster, spec cellcastv1alpha1.CellRevocationSpec, record *audit.Record) (bool, error) {
	record.BoundTo = revocation.SecretName(credential.Owner(c), spec.RevocationNonce)
	cell, err := s.Cells.Client(row)
	if err != nil || record.DryRun {
		return false, err
	}
	return mint.Revoke(ctx, cell, spec.Namespace, record.BoundTo)
}

func notFound(name string) error {
	return apierrors.NewNotFound(cellcastv1alpha1.Resource("cells"), name)
}
