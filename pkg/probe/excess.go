package probe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/probe/contract"
)

// excess lists what the credential may do beyond the contract. It's the owner's
// risk and never fails: what the hub holds, whoever takes over the hub holds.
func (p *probe) excess(ctx context.Context) finding {
	name := p.spec.Target.Namespace
	rules, err := p.api.ReviewRules(ctx, name)
	if failure.Of(err) == failure.Forbidden {
		return skipped("Not looked at: the target forbids the credential to list its own rights (create selfsubjectrulesreviews.authorization.k8s.io).").because(err)
	}
	if err != nil {
		return p.trouble(err, "list the credential's rights")
	}
	var limits string
	if rules.Incomplete || rules.EvaluationError != "" {
		limits = " The target says that its list is incomplete, so there may be more."
	}
	s := surplusOf(rules, allowed(p.spec.Target))
	if len(s.rights) == 0 {
		return passed("In namespace %s the credential may do nothing beyond the contract.%s", name, limits)
	}
	whole := fmt.Sprintf("In namespace %s the credential may do more than the hub needs: %s.", name, counted(s))
	if s.everything {
		whole = fmt.Sprintf("The credential may do everything in namespace %s: it's an administrator of the namespace.", name)
	}
	return warning("%s Whoever took over the hub could do that too: bind its ServiceAccount to the contract's Role alone. The command that the probe prints shows what else it's bound to.%s", whole, limits).
		with(s.items()).mendedBy(p.inNamespace("get", "rolebindings,clusterrolebindings", "--output", "wide"))
}

func counted(s surplus) string {
	number := fmt.Sprintf("%d kinds of rights", len(s.rights))
	if len(s.rights) == 1 {
		number = "one kind of right"
	}
	if s.cut {
		number = "at least " + number
	}
	return number
}

// allowed are the rights that are no surplus: the contract, what serves one item,
// and what Kubernetes gives every ServiceAccount.
func allowed(spec registryv1alpha1.ClusterTargetSpec) []contract.Right {
	rights := []contract.Right{
		{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews", Verbs: []string{"create"}},
		{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews", Verbs: []string{"create"}},
		{Group: "authentication.k8s.io", Resource: "selfsubjectreviews", Verbs: []string{"create"}},
		{Group: "certificates.k8s.io", Resource: "clustertrustbundles", Verbs: []string{"get", "list", "watch"}},
	}
	for _, part := range contract.Parts() {
		rights = append(rights, part.Rights(spec)...)
	}
	return rights
}

// allowedPath is what every ServiceAccount may get: discovery, health, version,
// and the keys that its tokens are signed with.
func allowedPath(verb, path string) bool {
	paths := []string{"/api", "/apis", "/openapi", "/healthz", "/livez", "/readyz", "/version", "/.well-known/openid-configuration", "/openid/v1/jwks"}
	return verb == "get" && slices.ContainsFunc(paths, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
}
