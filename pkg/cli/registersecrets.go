package cli

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"cellcast.io/cellcast/pkg/revocation"
)

// seeNoSecrets refuses namespaces that hold a Secret of anyone else's: the
// policies bound those that come, and the agent may read all that are there.
// Where it can't look it refuses as well: who may not list Secrets may not give
// the agent that right either.
func (o *registerOptions) seeNoSecrets(ctx context.Context, namespaces []string) error {
	if len(namespaces) == 0 {
		return nil
	}
	config, err := kubeconfigContext(o.kubeconfig, o.context).ClientConfig()
	if err != nil {
		return fmt.Errorf("read context %q of the kubeconfig: %w", o.context, err)
	}
	// Their names are enough: what is in them isn't asked for.
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to context %q: %w", o.context, err)
	}
	secrets := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets"))
	for _, ns := range namespaces {
		if err := o.seeNoSecret(ctx, secrets.Namespace(ns), ns); err != nil {
			return err
		}
	}
	return nil
}

func (o *registerOptions) seeNoSecret(ctx context.Context, secrets metadata.ResourceInterface, ns string) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	others, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: "!" + revocation.LabelSeconds})
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("see whether namespace %s of %s holds Secrets: nothing was applied, for it takes someone who may list them there to let the agent do it: %w", ns, o.context, err)
	case err != nil:
		return fmt.Errorf("see whether namespace %s of %s holds Secrets: nothing was applied: %w", ns, o.context, err)
	case len(others.Items) > 0:
		return fmt.Errorf("namespace %s of %s holds Secrets that aren't those of revocable credentials, %d in all, such as %s: nothing was applied, for the agent may read every Secret of a revocable namespace; "+
			"move what kubectl --context %[2]s --namespace %[1]s get secrets lists, or name another namespace", ns, o.context, len(others.Items), others.Items[0].Name)
	default:
		return nil
	}
}
