package cli

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/registration"
)

// fieldManager owns, at cell and hub, the fields that a registration sets.
const fieldManager = "cellcast-register"

// applyRegistration applies the cell's part and then the hub's, for the hub
// begins to use a cell when it has the row; and prints the rest.
func (e Env) applyRegistration(ctx context.Context, o *registerOptions, r registration.Registration) error {
	if err := o.seeNoSecrets(ctx, r.Revocable()); err != nil {
		return err
	}
	if err := e.applyTo(ctx, o, o.kubeconfig, o.context, r.OnCell()...); err != nil {
		return err
	}
	if err := e.applyTo(ctx, o, o.hubKubeconfig, o.hubContext, r.Cluster()); err != nil {
		return err
	}
	e.say("What follows remains to be done by hand, on the control plane of the cell. Until then the hub has no access to it.")
	return e.printParts(r, partAuthentication, partAudit)
}

// presentState is the state of the cell's row at the hub; empty where it has
// none. Applying a row without the state that an earlier run set would take it
// away, and make a dark or draining cell LIVE.
func (o *registerOptions) presentState(ctx context.Context, cell string) (registryv1alpha1.ClusterState, error) {
	client, err := dynamicClient(o.hubKubeconfig, o.hubContext)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	row, err := client.Resource(registryv1alpha1.SchemeGroupVersion.WithResource("clusters")).Get(ctx, cell, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the cell's row at the hub: %w", err)
	}
	state, _, err := unstructured.NestedString(row.Object, "spec", "state")
	return registryv1alpha1.ClusterState(state), err
}

// applyTo applies objects to the cluster of a context, in order.
func (e Env) applyTo(ctx context.Context, o *registerOptions, kubeconfig, context string, objects ...runtime.Object) error {
	client, err := dynamicClient(kubeconfig, context)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := e.applyOne(ctx, o, client, context, object); err != nil {
			return err
		}
	}
	return nil
}

func dynamicClient(kubeconfig, context string) (dynamic.Interface, error) {
	config, err := kubeconfigContext(kubeconfig, context).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read context %q of the kubeconfig: %w", context, err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to context %q: %w", context, err)
	}
	return client, nil
}

func (e Env) applyOne(ctx context.Context, o *registerOptions, client dynamic.Interface, to string, object runtime.Object) error {
	manifest, err := registration.Manifest(object)
	if err != nil {
		return err
	}
	what := manifest.GetKind() + " " + manifest.GetName()
	if manifest.GetNamespace() != "" {
		what += " in namespace " + manifest.GetNamespace()
	}
	// The guess is right for each kind that a registration has.
	resource, _ := meta.UnsafeGuessKindToResource(manifest.GroupVersionKind())

	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	_, err = client.Resource(resource).Namespace(manifest.GetNamespace()).
		Apply(ctx, manifest.GetName(), manifest, metav1.ApplyOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsNotFound(err) && manifest.GetNamespace() != "":
		return fmt.Errorf("apply %s to %s: the namespace isn't there: kubectl --context %[2]s create namespace %s", what, to, manifest.GetNamespace())
	case apierrors.IsNotFound(err):
		return fmt.Errorf("apply %s to %s: it serves no such kind: are cellcast's CRDs installed there, and is it the right context?", what, to)
	case apierrors.IsConflict(err):
		return fmt.Errorf("apply %s to %s: someone else has set what cellcast would set; see --only, and apply it with kubectl apply --server-side --force-conflicts if that's right: %w", what, to, err)
	case err != nil:
		return fmt.Errorf("apply %s to %s: %w", what, to, err)
	}
	e.say("Applied %s to %s.", what, to)
	return nil
}
