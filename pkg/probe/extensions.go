package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/probe/contract"
)

// localQueue sees that the queue of measure jobs exists.
func (p *probe) localQueue(ctx context.Context) finding {
	queue := p.spec.Target.Queue
	if queue == "" {
		return skipped("spec.queue names none, so the target runs no measure jobs.")
	}
	versions, err := p.versions(ctx, contract.GroupKueue)
	switch {
	case failure.Of(err) == failure.NotFound:
		return warning("Agent turns only, no measure jobs: Kueue isn't installed on the target (it serves no %s). "+
			"Ask the cluster's administrator for it, or leave out spec.queue.", contract.GroupKueue).mendedBy(p.patch(`{"spec":{"queue":null}}`))
	case err != nil:
		return p.trouble(err, "read which versions of "+contract.GroupKueue+" it serves")
	}
	_, missing, err := p.review(ctx, contract.LocalQueue.Rights(p.spec.Target))
	switch {
	case err != nil:
		return p.trouble(err, "review the credential's rights")
	case len(missing) > 0:
		return skipped("Not looked at, so the target runs no measure jobs: the credential may not %s. The right serves this item alone.",
			strings.Join(missing, ", ")).mendedBy(p.grant(contract.LocalQueue))
	}
	_, err = p.api.Metadata(ctx, fmt.Sprintf("/apis/%s/%s/namespaces/%s/localqueues/%s", contract.GroupKueue, versions[0], p.spec.Target.Namespace, queue))
	switch {
	case failure.Of(err) == failure.NotFound:
		return failed("Namespace %s has no LocalQueue %s. Correct spec.queue (%s), or create it: the command that the probe prints lists those that there are.",
			p.spec.Target.Namespace, queue, p.edit()).mendedBy(p.inNamespace("get", "localqueues."+contract.GroupKueue))
	case err != nil:
		return p.trouble(err, "get LocalQueue "+queue)
	}
	p.capabilities = append(p.capabilities, registryv1alpha1.CapabilityMeasure)
	return passed("LocalQueue %s exists.", queue)
}

// sandbox sees that the operator of the Sandbox resource is there, and that the
// credential may ask it for sandboxes.
func (p *probe) sandbox(ctx context.Context) finding {
	if p.spec.Target.SandboxDriver != registryv1alpha1.SandboxKubernetes {
		return skipped("spec.sandboxDriver is Podman: a pod makes its sandboxes itself.")
	}
	served, err := p.serves(ctx, contract.GroupSandbox, "sandboxes")
	switch {
	case err != nil:
		return p.trouble(err, "read which resources of "+contract.GroupSandbox+" it serves")
	case !served:
		return warning("Agent turns only, with nested Podman: the target serves no sandboxes.%s. "+
			"Ask the cluster's administrator for the operator of the Sandbox resource, or set spec.sandboxDriver to Podman.", contract.GroupSandbox).
			mendedBy(p.patch(`{"spec":{"sandboxDriver":"Podman"}}`))
	}
	items, missing, err := p.review(ctx, contract.Sandboxes.Rights(p.spec.Target))
	switch {
	case err != nil:
		return p.trouble(err, "review the credential's rights")
	case len(missing) > 0:
		for i := range items {
			if items[i].Result == registryv1alpha1.CheckFailed {
				items[i].Result = registryv1alpha1.CheckWarning
			}
		}
		return warning("Agent turns only, with nested Podman: the credential may not %s. The rights serve the sandbox driver Kubernetes alone.",
			strings.Join(missing, ", ")).with(items).mendedBy(p.grant(contract.Sandboxes))
	}
	p.capabilities = append(p.capabilities, registryv1alpha1.CapabilityKubernetesSandbox)
	return passed("The target serves sandboxes.%s, and the credential may use them.", contract.GroupSandbox).with(items)
}

// serves reports whether a resource is in a version of the group that is served.
func (p *probe) serves(ctx context.Context, group, resource string) (bool, error) {
	versions, err := p.versions(ctx, group)
	if failure.Of(err) == failure.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, version := range versions {
		document, err := p.api.Document(ctx, "/apis/"+group+"/"+version)
		if failure.Of(err) == failure.NotFound {
			continue
		}
		if err != nil {
			return false, err
		}
		var list struct {
			Resources []struct {
				Name string `json:"name"`
			} `json:"resources"`
		}
		if err := json.Unmarshal(document, &list); err != nil {
			return false, garbled(err)
		}
		for _, r := range list.Resources {
			if r.Name == resource {
				return true, nil
			}
		}
	}
	return false, nil
}

// maxVersions is how many versions of a group are looked at.
const maxVersions = 4

// version is what Kubernetes calls a version; it goes into a path.
var version = regexp.MustCompile(`^v[0-9]{1,4}((alpha|beta)[0-9]{1,4})?$`)

// versions are those of the group that are served, the preferred one first: one at
// least. The error is NotFound where the group isn't served.
func (p *probe) versions(ctx context.Context, group string) ([]string, error) {
	document, err := p.api.Document(ctx, "/apis/"+group)
	if err != nil {
		return nil, err
	}
	type served struct {
		Version string `json:"version"`
	}
	var description struct {
		Preferred served   `json:"preferredVersion"`
		Versions  []served `json:"versions"`
	}
	if err := json.Unmarshal(document, &description); err != nil {
		return nil, garbled(err)
	}
	var versions []string
	for _, v := range append([]served{description.Preferred}, description.Versions...) {
		if len(versions) < maxVersions && version.MatchString(v.Version) && !slices.Contains(versions, v.Version) {
			versions = append(versions, v.Version)
		}
	}
	if len(versions) == 0 {
		return nil, garbled(errors.New("no version is named"))
	}
	return versions, nil
}

// garbled is an answer that isn't discovery.
func garbled(err error) error {
	return &failure.Error{Kind: failure.Unexpected, Cell: "target", Err: fmt.Errorf("read the discovery: %w", err)}
}
