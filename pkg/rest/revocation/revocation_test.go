package revocation

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/registry"
)

// trail keeps records.
type trail []audit.Record

func (t *trail) Write(r audit.Record) error { *t = append(*t, r); return nil }

// A caller who reaches no cell of that name must not take the cells' attention
// from the mints, whether or not there is such a cell.
func TestStrangersRevokeAFewAtATime(t *testing.T) {
	var written trail
	s := &Storage{
		View: func() *registry.View { return &registry.View{} }, Strangers: make(chan struct{}, 1),
		SeesAll: func(context.Context) bool { return false }, Audit: &written, Now: time.Now,
	}
	ctx := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "dana"})
	revoke := func() error {
		_, err := s.Create(ctx, "prod-eu", &cellcastv1alpha1.CellRevocation{Spec: cellcastv1alpha1.CellRevocationSpec{
			Namespace: "payments", RevocationNonce: "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
		}}, nil, nil)
		return err
	}
	if err := revoke(); !apierrors.IsNotFound(err) {
		t.Errorf("alone it gets %v, want 404", err)
	}
	s.Strangers <- struct{}{}
	if got, ok := refusal.FromStatus(revoke()); !ok || got.Code != refusal.RateLimited {
		t.Errorf("beside another one it gets %v, want RateLimited", got)
	}
	<-s.Strangers
	if err := revoke(); !apierrors.IsNotFound(err) {
		t.Errorf("after it, it gets %v, want 404", err)
	}
	if len(written) != 3 || written[0].Event != audit.EventRevocation || written[1].Refusal != refusal.RateLimited {
		t.Errorf("the trail has %+v", written)
	}
}

func TestARevocationThatIsNotWellFormedIsRefused(t *testing.T) {
	var written trail
	s := &Storage{Audit: &written, Now: time.Now}
	ctx := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "dana"})
	for field, spec := range map[string]cellcastv1alpha1.CellRevocationSpec{
		"spec.namespace":       {Namespace: "../x", RevocationNonce: "ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
		"spec.revocationNonce": {Namespace: "payments", RevocationNonce: "guess"},
	} {
		_, err := s.Create(ctx, "prod-eu", &cellcastv1alpha1.CellRevocation{Spec: spec}, nil, nil)
		if got, ok := refusal.FromStatus(err); !ok || got.Code != refusal.InvalidRequest || got.Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
}
