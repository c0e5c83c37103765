package cli

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"cellcast.io/cellcast/pkg/cli/registration"
)

// part is one of the places where something of a registration goes.
type part string

// The parts.
const (
	partHub            part = "hub"
	partCell           part = "cell"
	partAuthentication part = "authentication"
	partAudit          part = "audit"
)

const (
	hubComment = `# Part 1 of 4, for the hub: the cell's row. Apply it last, for with it the hub
# begins to use the cell:
#   … --only hub | kubectl --context HUB apply --server-side -f -
`
	cellComment = `# Part 2 of 4, for the cell: policies that bound every token that is asked for by
# way of the hub and every Secret that a revocable one is bound to, then the hub's
# access, then the agent's. The namespaces and ServiceAccounts that tokens are
# minted for are yours to create.
#   … --only cell | kubectl --context CELL apply --server-side -f -
`
	revocableComment = `# Before you do, see that the namespaces of revocable credentials hold no Secret of
# anyone else's. The cell's agent may read all that are there:
#   kubectl --context CELL --namespace NAMESPACE get secrets
`
	authenticationComment = `# Part 3 of 4, for the cell's kube-apiserver: --authentication-config=FILE, which
# excludes --oidc-* flags and is read anew when it changes. Where there is such a
# file already, add the entry of jwt to it.
`
	auditComment = `# Part 4 of 4, for the cell's kube-apiserver: --audit-policy-file=FILE. Put the
# rule before all others, for the first that matches counts: tokens are in the
# requests and answers of both, and must not be in the log.
`
)

// printParts prints parts as one stream of documents.
func (e Env) printParts(r registration.Registration, parts ...part) error {
	for i, p := range parts {
		text, err := p.render(r)
		if err != nil {
			return err
		}
		if i > 0 {
			text = "---\n" + text
		}
		if _, err := fmt.Fprint(e.Out, text); err != nil {
			return err
		}
	}
	return nil
}

// render is a part as commented YAML.
func (p part) render(r registration.Registration) (string, error) {
	var comment string
	var content []byte
	var err error
	switch p {
	case partHub:
		comment = hubComment
		content, err = registration.YAML(r.Cluster())
	case partCell:
		comment = cellComment
		if len(r.Revocable()) > 0 {
			comment += revocableComment
		}
		content, err = registration.YAML(r.OnCell()...)
	case partAuthentication:
		comment = authenticationComment
		content, err = yaml.Marshal(r.Authentication())
	case partAudit:
		comment = auditComment
		content, err = yaml.Marshal(r.Audit())
	default:
		return "", fmt.Errorf("no part of a registration is called %q", string(p))
	}
	return comment + string(content), err
}
