package probe

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/probe/contract"
)

// pullSecrets sees that the Secrets exist which pods pull their images with. It
// looks only where it may, and never for the sake of looking: the right to do so
// is a right to read them.
func (p *probe) pullSecrets(ctx context.Context) finding {
	rights := contract.PullSecrets.Rights(p.spec.Target)
	if len(rights) == 0 {
		return skipped("spec.imagePullSecrets names none.")
	}
	reviewed, _, err := p.review(ctx, rights)
	if err != nil {
		return p.trouble(err, "review the credential's rights")
	}
	var items []registryv1alpha1.TargetCheckItem
	var unseen, absent []string
	for i, name := range p.spec.Target.ImagePullSecrets {
		result := registryv1alpha1.CheckSkipped
		if reviewed[i].Result == registryv1alpha1.CheckPassed {
			if result, err = p.secret(ctx, name); err != nil {
				return p.trouble(err, "read the metadata of Secret "+name)
			}
		}
		switch result {
		case registryv1alpha1.CheckFailed:
			absent = append(absent, name)
		case registryv1alpha1.CheckPassed:
		default:
			unseen = append(unseen, name)
		}
		items = append(items, registryv1alpha1.TargetCheckItem{Name: name, Result: result})
	}
	return p.secretsFound(absent, unseen).with(items)
}

func (p *probe) secret(ctx context.Context, name string) (registryv1alpha1.CheckResult, error) {
	_, err := p.api.Metadata(ctx, fmt.Sprintf("/api/v1/namespaces/%s/secrets/%s", p.spec.Target.Namespace, name))
	switch {
	case err == nil:
		return registryv1alpha1.CheckPassed, nil
	case failure.Of(err) == failure.NotFound:
		return registryv1alpha1.CheckFailed, nil
	default:
		return "", err
	}
}

func (p *probe) secretsFound(absent, unseen []string) finding {
	switch {
	case len(absent) > 0:
		return failed("Namespace %s has no Secret %s, with which pods shall pull their images. Create it, or take it out of spec.imagePullSecrets (%s).",
			p.spec.Target.Namespace, strings.Join(absent, ", "), p.edit()).mendedBy(p.createPullSecrets(absent))
	case len(unseen) > 0:
		return skipped("Not looked at: the credential may not get secrets %s. The right serves this item alone; pods pull with them without it.",
			strings.Join(unseen, ", "))
	default:
		return passed("The pull secrets exist.")
	}
}

func (p *probe) createPullSecrets(names []string) string {
	commands := make([]string, len(names))
	for i, name := range names {
		commands[i] = p.inNamespace("create", "secret", "generic", name,
			"--type="+string(corev1.SecretTypeDockerConfigJson), "--from-file="+corev1.DockerConfigJsonKey+"=config.json")
	}
	return strings.Join(commands, " && ")
}

// tokens sees whether clustertargets/token can mint here.
func (p *probe) tokens(ctx context.Context) finding {
	_, missing, err := p.review(ctx, contract.Tokens.Rights(p.spec.Target))
	if err != nil {
		return p.trouble(err, "review the credential's rights")
	}
	if len(missing) > 0 {
		return skipped("The credential may not %s. The right serves clustertargets/token alone: without it this target gives no tokens.",
			strings.Join(missing, ", ")).mendedBy(p.grant(contract.Tokens))
	}
	p.capabilities = append(p.capabilities, registryv1alpha1.CapabilityTokens)
	return passed("The credential may mint tokens of ServiceAccount %s, for clustertargets/token.", contract.ServiceAccountName(p.spec.Target))
}
