package targets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/probe/contract"
	"cellcast.io/cellcast/test/world"
)

// types runs a command as the owner does who reads a message: in a shell with
// kubectl, which asks the hub, and beside the files that a message may name, with a
// kubeconfig of an administrator of the brought cluster among them. The editor
// takes the ingestURL out of a row.
func (b *brought) types(command string) {
	b.t.Helper()
	if hub.Kubectl == "" {
		b.t.Skip("there is no kubectl: run make kube")
	}
	dir := b.t.TempDir()
	for name, content := range map[string][]byte{
		"hub": kubeconfigOf(b.t, b.owner), "kubeconfig": kubeconfigOf(b.t, acme().Admin),
		"config.json": []byte(`{"auths":{}}`), "FILE": b.kubeconfig(b.token),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(b.t.Context(), "sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = []string{"KUBECONFIG=" + filepath.Join(dir, "hub"), "KUBE_EDITOR=sed -i /^..ingestURL:/d", "HOME=" + dir, "PATH=" + filepath.Dir(hub.Kubectl) + ":" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("%s\n%v\n%s", command, err, out)
	}
}

// kubeconfigOf is a kubeconfig of the user's, of its own: the world's is written
// anew by each test that asks for the user.
func kubeconfigOf(t *testing.T, user world.User) []byte {
	t.Helper()
	from, config := user.Config(), clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: from.Host, CertificateAuthorityData: from.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: from.CertData, ClientKeyData: from.KeyData}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	return must(clientcmd.Write(*config))(t)
}

// applies runs the remedy of a check.
func applies(b *brought, c registryv1alpha1.TargetCheck) {
	b.t.Helper()
	if c.Remedy == "" {
		b.t.Fatalf("%s has no remedy: %s", c.Name, c.Message)
	}
	b.types(c.Remedy)
}

// wouldApply sees that the hub takes a change of the row that a remedy makes, and
// changes nothing.
func wouldApply(b *brought, c registryv1alpha1.TargetCheck) {
	b.t.Helper()
	c.Remedy += " --dry-run=server"
	applies(b, c)
}

// denies takes one verb from the Role that holds what the hub needs.
func (b *brought) denies(verb, resource string) {
	b.t.Helper()
	role := contract.Needed.Role(registryv1alpha1.ClusterTargetSpec{Namespace: b.name}, contract.Account(b.name, account))
	for i, rule := range role.Rules {
		if rule.Resources[0] == resource {
			role.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(v string) bool { return v == verb })
		}
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return len(rule.Verbs) == 0 })
	must(b.target.RbacV1().Roles(b.name).Update(b.t.Context(), role, metav1.UpdateOptions{}))(b.t)
	b.untilMay(false, verb, resource)
}

// untilMay waits until the brought cluster lets the hub's account do something, or
// doesn't any more: it takes up a Role a moment after that is written.
func (b *brought) untilMay(want bool, verb, resource string) {
	b.t.Helper()
	untilAllowed(b.t, b.target, want, may(b.name, account, attributesOf(b.name, verb, resource)))
}

// untilHubMayRead does the same of the hub and a Secret of the owner's.
func (b *brought) untilHubMayRead(want bool, secret string) {
	b.t.Helper()
	untilAllowed(b.t, clientset(b.t, hub.Hub.Admin), want, may(world.Namespace, world.HubServiceAccount, attributesOf(b.name, "get", "secrets "+secret)))
}

// may is the question whether a ServiceAccount may do something.
func may(namespace, account string, what *authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewSpec {
	return authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + namespace + ":" + account,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		ResourceAttributes: what,
	}
}

// untilAllowed waits until the answer at a cluster is as it should be.
func untilAllowed(t *testing.T, at kubernetes.Interface, want bool, question authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	what := question.ResourceAttributes
	eventually(t, fmt.Sprintf("%s may %s %s %s: %t", question.User, what.Verb, what.Resource, what.Name, want), func(ctx context.Context) error {
		answer, err := at.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: question}, metav1.CreateOptions{})
		if err == nil && answer.Status.Allowed != want {
			err = errors.New("not yet")
		}
		return err
	})
}

// attributesOf reads a resource as messages name it: pods/log, localqueues.kueue.x-k8s.io
// and, after a space, the one object.
func attributesOf(namespace, verb, resource string) *authorizationv1.ResourceAttributes {
	resource, name, _ := strings.Cut(resource, " ")
	resource, group, _ := strings.Cut(resource, ".")
	resource, subresource, _ := strings.Cut(resource, "/")
	return &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: subresource, Name: name}
}
