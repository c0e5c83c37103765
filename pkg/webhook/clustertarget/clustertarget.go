// Package clustertarget is the admission of ClusterTarget rows. A target belongs
// to its owner: nobody registers one for somebody else, changes one that isn't
// theirs, or has the hub use a credential that they can't read themselves. What the
// schema can say of a row, the schema says.
//
// Who may update rows of a namespace may still label and annotate any target in
// it, except that env, which sets how long credentials live, is the owner's. An
// answer names fields and rights, and repeats nothing of the row but the names
// that the schema holds to the form of a name.
package clustertarget

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/webhook"
)

// Path is where the webhook configuration sends ClusterTargets.
const Path = "/admission/clustertargets"

// Lister lists the stored Clusters; the generated ClusterLister is one.
type Lister interface {
	List(selector labels.Selector) ([]*registry.Cluster, error)
}

// Access says what a user of the hub may do there; webhook.Access does.
type Access interface {
	Allowed(ctx context.Context, user authenticationv1.UserInfo, attributes authorizationv1.ResourceAttributes) (bool, error)
}

// VaultPath returns why a path in Vault isn't under the prefix of the owner, or
// nil. The registrant reads its error, which must not repeat the path.
type VaultPath func(owner registry.TargetOwner, path string) error

// NewHandler returns the admission handler of ClusterTarget. A nil vaultPath is a
// hub without a Vault, where every vaultRef is refused.
func NewHandler(clusters Lister, access Access, vaultPath VaultPath, auditor webhook.Auditor) admission.Handler {
	kind := registry.SchemeGroupVersion.WithKind("ClusterTarget").GroupKind()
	return webhook.NewHandler(kind, rules{clusters, access, vaultPath}, auditor)
}

type rules struct {
	clusters  Lister
	access    Access
	vaultPath VaultPath
}

// Validate implements webhook.Validator.
func (r rules) Validate(ctx context.Context, req webhook.Request, row, old *registry.ClusterTarget) (field.ErrorList, []string, error) {
	c := change{req.User, row, old}
	var errs field.ErrorList
	for _, rule := range []func(context.Context, change) (field.ErrorList, error){r.name, r.metadata, r.owner, r.credential} {
		wrong, err := rule(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		errs = append(errs, wrong...)
	}
	return errs, webhook.EnvWarnings(row.Labels, "the target"), nil
}

// change is what somebody does to a row; old is nil for a new one.
type change struct {
	user     authenticationv1.UserInfo
	row, old *registry.ClusterTarget
}

// name keeps the names of cells for cells: dispatch is told a bare name. A
// Cluster that comes later is the operator's right, and shows as NameConflict.
func (r rules) name(_ context.Context, c change) (field.ErrorList, error) {
	if c.old != nil {
		return nil, nil
	}
	clusters, err := r.clusters.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	for _, cluster := range clusters {
		if cluster.Name == c.row.Name {
			return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), "is the name of a cell of the fleet: choose another")}, nil
		}
	}
	return nil, nil
}
