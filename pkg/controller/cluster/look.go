package cluster

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/klog/v2"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/cell/failure"
)

// Look looks at cells through the clients that mint there, so that what it
// finds is what a mint would find.
type Look struct {
	Clients *cell.Clients
	// Readable reads the keys of the cell's reporter.
	Readable func(ctx context.Context, cluster *registryv1alpha1.Cluster) error
	// HubIssuer is the issuer of the hub's own tokens.
	HubIssuer func(ctx context.Context) (string, error)
}

// Trust authenticates at the cell as the hub.
func (l Look) Trust(ctx context.Context, cluster *registryv1alpha1.Cluster) Finding {
	client, err := l.Clients.For(cluster)
	if err != nil {
		return Finding{false, registryv1alpha1.ReasonInvalid, err.Error()}
	}
	who, err := client.WhoAmI(ctx)
	if err == nil {
		return Finding{true, registryv1alpha1.ReasonAuthenticated, fmt.Sprintf("The cell knows the hub as %s.", who.Username)}
	}
	klog.FromContext(ctx).V(2).Info("A cell doesn't know the hub", "cell", cluster.Name, "err", err)
	switch failure.Of(err) {
	case failure.Unauthenticated:
		return l.unauthenticated(ctx, cluster)
	case failure.NoHubToken:
		return Finding{false, registryv1alpha1.ReasonHubTokenUnavailable,
			"The hub couldn't get its own token from its API server; its log says why. The cell wasn't asked."}
	case failure.Forbidden:
		return Finding{false, registryv1alpha1.ReasonUnauthenticated,
			"The cell answered 403 to a SelfSubjectReview, which every authenticated user may create: something before its API server refuses the hub."}
	case failure.Unreachable, failure.Unavailable, failure.Interrupted:
		return Finding{false, registryv1alpha1.ReasonUnreachable,
			"The cell can't be reached at " + cluster.Spec.Endpoint + ": check the endpoint, the caBundle and the network from the hub. The hub's log has the error."}
	default:
		return Finding{false, registryv1alpha1.ReasonUnreachable,
			"What answers at " + cluster.Spec.Endpoint + " isn't a Kubernetes API server that the hub understands. The hub's log has the error."}
	}
}

// unauthenticated says why a cell may refuse the hub's token. A cell that has
// the hub's own issuer can't be told apart by its answer, only by its row.
func (l Look) unauthenticated(ctx context.Context, cluster *registryv1alpha1.Cluster) Finding {
	issuer, err := l.HubIssuer(ctx)
	if err == nil && cluster.Spec.Reporter != nil && strings.TrimSuffix(cluster.Spec.Reporter.Issuer, "/") == strings.TrimSuffix(issuer, "/") {
		return Finding{false, registryv1alpha1.ReasonSharedIssuer,
			"The cell's issuer is the hub's own, " + issuer + ": an API server refuses to trust its own issuer a second time. Give the hub another first --service-account-issuer."}
	}
	return Finding{false, registryv1alpha1.ReasonUnauthenticated,
		"The cell doesn't believe the hub's token: compare its AuthenticationConfiguration with what cellcast register cell " + cluster.Name +
			" prints, and whether the cell reaches the hub's external URL."}
}

// ReporterKeys reads the keys of the cell's reporter.
func (l Look) ReporterKeys(ctx context.Context, cluster *registryv1alpha1.Cluster) Finding {
	if cluster.Spec.Reporter == nil {
		return Finding{false, registryv1alpha1.ReasonNoReporter,
			"spec.reporter is unset, so nobody may report: the cell stays Unknown and takes no placement."}
	}
	err := l.Readable(ctx, cluster)
	if err == nil {
		return Finding{true, registryv1alpha1.ReasonKeysRead, "The reporter's signing keys were read."}
	}
	klog.FromContext(ctx).V(2).Info("A reporter's keys can't be read", "cell", cluster.Name, "err", err)
	if failure.Of(err) == failure.Forbidden {
		return Finding{false, registryv1alpha1.ReasonKeysForbidden,
			"The cell forbids the hub to read /openid/v1/jwks: bind ClusterRole system:service-account-issuer-discovery to the hub's user, as cellcast register cell prints."}
	}
	return Finding{false, registryv1alpha1.ReasonKeysUnavailable,
		"The reporter's signing keys can't be read, so new reports are refused once the known keys end. The hub's log has the error."}
}
