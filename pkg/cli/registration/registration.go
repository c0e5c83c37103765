// Package registration makes everything that joins a cell to a hub, out of a
// few facts about both: the row at the hub, the hub's narrow access to the
// cell, the bounds that hold even if the hub is taken over, the trust in the
// hub's tokens, and the audit rule. `cellcast register cell` prints it; tests
// and demos apply the very same.
//
// The package is pure: facts in, objects out. There is no place in it for a
// credential.
package registration

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// Cell is what is known about a cell before it's registered. The zero value of
// a field that says so means its default.
type Cell struct {
	// Name is the cell's name, and the name of its Cluster row.
	Name string
	// Endpoint is the https URL of the cell's API server, as the hub and the
	// callers reach it.
	Endpoint string
	// CABundle is the PEM certificates to check that server by, and nothing
	// but certificates. Empty means the system's roots.
	CABundle []byte
	// Provider is whose Kubernetes it is. Empty leaves it to the hub: generic.
	Provider registryv1alpha1.ClusterProvider
	// State is the state to register with. Empty leaves it to the hub, which
	// makes a new cell LIVE and keeps the state of one that it has.
	State registryv1alpha1.ClusterState
	// Labels are what policies select by.
	Labels map[string]string

	// Issuer is the issuer of the cell's own ServiceAccount tokens, the agent's
	// among them.
	Issuer string
	// APIAudiences are what the cell's API server puts into a token that asks
	// for no audience: its --api-audiences. Empty means the Issuer, which is
	// also the API server's own default.
	APIAudiences []string
	// Audience is what the hub's tokens for this cell are issued for. Empty
	// means cellcast:cell:<name>.
	Audience string

	// Agent is the ServiceAccount that reports the cell's capacity. The zero
	// value means cellcast-system/cellcast-agent.
	Agent types.NamespacedName
	// Mint are the ServiceAccounts that the hub may ask tokens for: at least
	// one. Nothing here creates them.
	Mint []types.NamespacedName
	// MintAudiences are audiences that those tokens may have besides the API
	// server's.
	MintAudiences []string
	// MaxTTL is the longest life of those tokens, at least ten minutes. Zero
	// means one hour.
	MaxTTL time.Duration

	// Revocable are the namespaces whose credentials can be ended before they
	// expire. They hold nothing else: every token that the hub asks for there,
	// for ServiceAccounts of Mint, is a revocable one, and nobody may create
	// any other Secret there. At most 64. Nothing here creates them, and they
	// must hold no Secret yet: the agent may read every one of them.
	Revocable []string
	// RevocableQuota is how many Secrets each of them may hold, 1 to 100,000.
	// Zero means DefaultRevocableQuota.
	RevocableQuota int64

	// Hub is the hub that the cell joins.
	Hub Hub
}

// Hub is what a cell has to know of the hub.
type Hub struct {
	// Issuer is the issuer of the hub's ServiceAccount tokens.
	Issuer string
	// MirrorURL is the https URL of the hub's discovery mirror, without the
	// well-known path. Empty means that the cell reads the issuer's own
	// discovery document, which must then be public.
	MirrorURL string
	// MirrorCA is the PEM certificates to check the mirror by. Empty means the
	// roots of the cell's control plane.
	MirrorCA []byte
	// ServiceAccount is the hub's own. The zero value means
	// cellcast-system/cellcast-hub.
	ServiceAccount types.NamespacedName
}

// Registration is a checked Cell. Its methods can't fail.
type Registration struct {
	cell Cell
}

// New fills in the defaults and checks the cell. The error names everything
// that is wrong with it.
func New(c Cell) (Registration, error) {
	c = c.withDefaults()
	cellCA, cellErr := certificates(c.CABundle)
	mirrorCA, mirrorErr := certificates(c.Hub.MirrorCA)
	if err := errors.Join(c.check(), about("CA of the cell", cellErr), about("CA of the hub's mirror", mirrorErr)); err != nil {
		return Registration{}, err
	}
	c.CABundle, c.Hub.MirrorCA = cellCA, mirrorCA
	return Registration{cell: c}, nil
}

// Revocable are the namespaces whose credentials can be ended before they
// expire, sorted.
func (r Registration) Revocable() []string { return slices.Clone(r.cell.Revocable) }

// Cluster is the row for the hub. It sets neither status nor anything that it
// wasn't given, so that applying it again keeps what operators set since.
func (r Registration) Cluster() *registryv1alpha1.Cluster {
	c := r.cell
	return &registryv1alpha1.Cluster{
		TypeMeta: metav1.TypeMeta{
			APIVersion: registryv1alpha1.SchemeGroupVersion.String(),
			Kind:       "Cluster",
		},
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: c.Labels},
		Spec: registryv1alpha1.ClusterSpec{
			Endpoint: c.Endpoint,
			CABundle: c.CABundle,
			Provider: c.Provider,
			State:    c.State,
			Trust:    registryv1alpha1.ClusterTrust{Audience: c.Audience},
			Reporter: &registryv1alpha1.ClusterReporter{
				Issuer:  c.Issuer,
				Subject: subject(c.Agent),
			},
		},
	}
}

// OnCell is what is applied to the cell, in this order: the bounds come before
// the access that they bound.
func (r Registration) OnCell() []runtime.Object {
	var objects []runtime.Object
	objects = append(objects, r.bounds()...)
	objects = append(objects, r.secretBounds()...)
	objects = append(objects, r.secretQuotas()...)
	objects = append(objects, r.hubAccess()...)
	objects = append(objects, r.agentAccess()...)
	return append(objects, r.secretAccess(r.cell.hub(), r.cell.agent())...)
}

// Authentication is what makes the cell's API server accept the hub's tokens
// for this cell.
func (r Registration) Authentication() AuthenticationConfiguration {
	return r.cell.Hub.Authentication(r.cell.Audience)
}

// Audit is the rule that keeps minted tokens out of the cell's audit log.
func (r Registration) Audit() AuditPolicy { return auditPolicy() }

// User is the name by which a cell knows a hub.
func (h Hub) User() string { return UserPrefix + subject(h.withDefaults().ServiceAccount) }

// UserPrefix is in front of the name of everyone whom a cell knows by a token
// of the hub's issuer.
const UserPrefix = "cellcast-hub:"

// subject is the sub of a ServiceAccount's tokens.
func subject(sa types.NamespacedName) string {
	return "system:serviceaccount:" + sa.Namespace + ":" + sa.Name
}

// labels are on everything that is applied to a cell.
func labels() map[string]string {
	return map[string]string{"app.kubernetes.io/part-of": "cellcast"}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels()},
	}
}
