// Package contract is what a brought target's credential may do: the rights that
// the hub needs, each with its reason, those that serve one item of the probe or
// one capability alone, and the Role that grants them.
//
// All of it is bounded by the target's one namespace and can be granted by who
// owns that, without any right on the cluster. The probe, the client that
// registers a target and the docs read it here, so they can't disagree.
package contract

import (
	"slices"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// Right is verbs on one resource of the target's namespace.
type Right struct {
	// Group is the API group; empty is the core group.
	Group string
	// Resource is the plural name, with the subresource where one is meant:
	// pods/log.
	Resource string
	// Names are the objects that are meant; empty means any.
	Names []string
	Verbs []string
	// Why says what the hub does with it.
	Why string
}

// On is the resource as kubectl names it: pods/log, localqueues.kueue.x-k8s.io.
func (r Right) On() string { return On(r.Group, r.Resource) }

// On is a resource of a group as kubectl names it.
func On(group, resource string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

// Covers reports whether the right includes the verb on the resource: on these
// objects, or on any where none is named.
func (r Right) Covers(verb, group, resource string, names []string) bool {
	if r.Group != group || r.Resource != resource || !slices.Contains(r.Verbs, verb) {
		return false
	}
	if len(r.Names) == 0 {
		return true
	}
	other := func(name string) bool { return !slices.Contains(r.Names, name) }
	return len(names) > 0 && !slices.ContainsFunc(names, other)
}

// Part is a part of the contract. Each has a Role of its own, so that an owner
// can grant or take back one and leave the others as they are.
type Part string

// The parts.
const (
	// Needed is what no target is Ready without.
	Needed Part = "Needed"
	// PullSecrets serves the item PullSecrets alone: pods pull without it.
	PullSecrets Part = "PullSecrets"
	// Tokens serves clustertargets/token alone.
	Tokens Part = "Tokens"
	// LocalQueue serves measure jobs alone.
	LocalQueue Part = "LocalQueue"
	// Sandboxes serves the sandbox driver Kubernetes alone.
	Sandboxes Part = "Sandboxes"
)

// Parts are all of them.
func Parts() []Part { return []Part{Needed, PullSecrets, Tokens, LocalQueue, Sandboxes} }

// The groups of what an administrator of the target may have installed.
const (
	GroupKueue   = "kueue.x-k8s.io"
	GroupSandbox = "agents.x-k8s.io"
)

// Contract is what the hub needs of every target.
func Contract() []Right {
	managed := []string{"create", "get", "list", "watch", "delete"}
	return []Right{
		{Resource: "namespaces", Verbs: []string{"get"},
			Why: "The probe sees that the namespace exists and isn't being deleted. In a Role it's a right on that one namespace."},
		{Resource: "pods", Verbs: managed,
			Why: "The hub starts pods, sees how they fare, and deletes them when they're done."},
		{Resource: "pods/log", Verbs: []string{"get"},
			Why: "The hub hands the logs of a pod to whoever launched it."},
		{Resource: "configmaps", Verbs: managed,
			Why: "What a pod is to do is written beside it, and is deleted with it."},
	}
}

// Rights are those of the part for a target of this spec; none where the target
// doesn't use the part.
func (p Part) Rights(spec registryv1alpha1.ClusterTargetSpec) []Right {
	switch p {
	case Needed:
		return Contract()
	case PullSecrets:
		if len(spec.ImagePullSecrets) == 0 {
			return nil
		}
		return []Right{{Resource: "secrets", Names: spec.ImagePullSecrets, Verbs: []string{"get"},
			Why: "The probe sees that the pull secrets exist. It reads their metadata alone, though the right lets it read more."}}
	case Tokens:
		return []Right{{Resource: "serviceaccounts/token", Names: []string{ServiceAccountName(spec)}, Verbs: []string{"create"},
			Why: "clustertargets/token mints a short-lived token of this ServiceAccount for whom the target's owner covers."}}
	case LocalQueue:
		if spec.Queue == "" {
			return nil
		}
		return []Right{{Group: GroupKueue, Resource: "localqueues", Names: []string{spec.Queue}, Verbs: []string{"get"},
			Why: "The probe sees that the queue of measure jobs exists."}}
	case Sandboxes:
		if spec.SandboxDriver != registryv1alpha1.SandboxKubernetes {
			return nil
		}
		return []Right{{Group: GroupSandbox, Resource: "sandboxes", Verbs: []string{"create", "get", "list", "watch", "delete"},
			Why: "Turns have their sandboxes made by the operator of the Sandbox resource."}}
	default:
		return nil
	}
}

// ServiceAccountName is who pods of the target run as.
func ServiceAccountName(spec registryv1alpha1.ClusterTargetSpec) string {
	if spec.ServiceAccountName == "" {
		return "default"
	}
	return spec.ServiceAccountName
}
