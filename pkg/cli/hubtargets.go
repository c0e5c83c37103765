package cli

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/door"
)

// targetKey is the row of a brought target: the namespace that the user names,
// else that of the kubeconfig's context.
func (h *hub) targetKey(namespace, name string) (types.NamespacedName, error) {
	if namespace == "" {
		namespace = h.at.Namespace
	}
	if namespace == "" {
		return types.NamespacedName{}, &usageError{"in which namespace of the hub is the target's row? Name it with -n"}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// hasRows refuses the door behind which there are no rows.
func (h *hub) hasRows() error {
	if h.at.Kind == door.Direct {
		return &usageError{"the target's row is read at the hub's API server: name a kubeconfig for that with --kubeconfig or --context, without --hub"}
	}
	return nil
}

// target gets the row of a brought target.
func (h *hub) target(ctx context.Context, key types.NamespacedName) (*registryv1alpha1.ClusterTarget, error) {
	row := &registryv1alpha1.ClusterTarget{}
	err := h.ask(ctx, about{target: key.String()}, h.registry.Get().Namespace(key.Namespace).Resource("clustertargets").Name(key.Name), row)
	row.SetGroupVersionKind(registryv1alpha1.SchemeGroupVersion.WithKind("ClusterTarget"))
	row.ManagedFields = nil
	return row, err
}

// probe asks for a probe, and returns the id of the run that answers.
func (h *hub) probe(ctx context.Context, key types.NamespacedName) (cellcastv1alpha1.TargetProbeStatus, error) {
	answer := &cellcastv1alpha1.TargetProbe{}
	question := h.rest.Post().Namespace(key.Namespace).Resource("clustertargets").Name(key.Name).SubResource("probe").
		VersionedParams(strict(false), h.codec).Body(&cellcastv1alpha1.TargetProbe{})
	err := h.ask(ctx, about{target: key.String()}, question, answer)
	return answer.Status, err
}

// targetToken asks for a token of a brought target, sealed on its way and open in
// the answer.
func (h *hub) targetToken(ctx context.Context, key types.NamespacedName, spec cellcastv1alpha1.TargetTokenSpec) (*cellcastv1alpha1.TargetToken, error) {
	sealed, recipient, err := sealing(false)
	if err != nil {
		return nil, err
	}
	spec.Recipient = recipient
	answer := &cellcastv1alpha1.TargetToken{}
	question := h.rest.Post().Namespace(key.Namespace).Resource("clustertargets").Name(key.Name).SubResource("token").
		VersionedParams(strict(false), h.codec).Body(&cellcastv1alpha1.TargetToken{Spec: spec})
	if err := h.ask(ctx, about{target: key.String(), mint: true}, question, answer); err != nil {
		return nil, err
	}
	answer.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("TargetToken"))
	answer.Spec.Recipient = nil
	// No cell could revoke it: its name is for that alone.
	return answer, h.open(ctx, sealed, "", answer.Status.Credential)
}

// launchTargets lists what the caller may launch onto.
func (h *hub) launchTargets(ctx context.Context, fieldSelector string) (*cellcastv1alpha1.LaunchTargetList, error) {
	question := h.rest.Get().Resource("launchtargets")
	if fieldSelector != "" {
		question = question.Param("fieldSelector", fieldSelector)
	}
	list := &cellcastv1alpha1.LaunchTargetList{}
	err := h.ask(ctx, about{}, question, list)
	list.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("LaunchTargetList"))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("LaunchTarget"))
	}
	return list, err
}
