package custody

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/secret"
)

// read reads the source, and puts that on record before anything comes of it. The
// version is known too of a file that is refused.
func (c *Custody) read(ctx context.Context, ref Ref) (kubeconfig.Kubeconfig, string, error) {
	started := c.options.Clock.Now()
	kind, name := ref.source()
	k, version, err := c.parse(ctx, ref, kind, name)
	ended := c.options.Clock.Now()

	record := audit.Record{
		Time: ended, Event: audit.EventCredentialRead, Outcome: audit.OutcomeAllowed,
		Target: ref.address(), Kind: kind, Name: name,
		DurationMS: float64(ended.Sub(started).Microseconds()) / 1000,
	}
	if err != nil {
		record.Outcome = audit.OutcomeFailed
	}
	if lost := c.options.Audit.Write(record); lost != nil {
		return kubeconfig.Kubeconfig{}, "", fmt.Errorf("the read of the credential of %s isn't on record, so it isn't used: %w", ref.address(), lost)
	}
	return k, version, err
}

func (c *Custody) parse(ctx context.Context, ref Ref, kind, name string) (kubeconfig.Kubeconfig, string, error) {
	text, version, err := c.fetch(ctx, ref, kind)
	if err != nil {
		return kubeconfig.Kubeconfig{}, "", err
	}
	k, err := kubeconfig.ParsePermitted([]byte(text.Reveal()), c.options.Permitted)
	if err != nil {
		return kubeconfig.Kubeconfig{}, version, fmt.Errorf("the kubeconfig of %s in %s %s: %w", ref.address(), kind, name, err)
	}
	return k, version, nil
}

func (c *Custody) fetch(ctx context.Context, ref Ref, kind string) (secret.Value, string, error) {
	switch kind {
	case kindSecret:
		return c.fromSecret(ctx, ref.Namespace, ref.Source.SecretRef.Name)
	case kindVault:
		return c.fromVault(ctx, ref.Owner, ref.Source.VaultRef)
	default:
		return secret.Value{}, "", &Unavailable{Reason: ReasonNoSource, what: "the row " + ref.Namespace + "/" + ref.Name,
			advice: "The row must name a secretRef or a vaultRef, and one of them only: set spec.credentialRef."}
	}
}

func (c *Custody) fromSecret(ctx context.Context, namespace, name string) (secret.Value, string, error) {
	unavailable := secretAdvice{namespace: namespace, name: name, hub: c.options.Hub}
	got, err := c.options.Secrets.Get(ctx, namespace, name)
	if err != nil {
		return secret.Value{}, "", unavailable.unread(err)
	}
	// Else a row could draw any Secret that the hub may read into this.
	if got.Type != registryv1alpha1.SecretTypeKubeconfig {
		return secret.Value{}, "", unavailable.otherType()
	}
	text, has := got.Data[registryv1alpha1.SecretKeyKubeconfig]
	if !has || len(got.Data) != 1 {
		return secret.Value{}, "", unavailable.otherKeys()
	}
	return secret.New(string(text)), "secret:" + got.ResourceVersion, nil
}

func (c *Custody) fromVault(ctx context.Context, owner registryv1alpha1.TargetOwner, ref *registryv1alpha1.TargetVaultRef) (secret.Value, string, error) {
	if c.options.Vault == nil {
		return secret.Value{}, "", noVault()
	}
	// The row may be older than its rules, or than its owner.
	if err := PathAllowed(owner, ref.Path); err != nil {
		return secret.Value{}, "", pathRefused(err)
	}
	text, version, err := c.options.Vault.Read(ctx, ref.Path, keyOf(ref))
	if err != nil {
		return secret.Value{}, "", vaultUnread(ref, err)
	}
	return text, "vault:" + version, nil
}

// keyOf is the key, which a row that was never defaulted leaves out.
func keyOf(ref *registryv1alpha1.TargetVaultRef) string {
	if ref.Key == "" {
		return registryv1alpha1.SecretKeyKubeconfig
	}
	return ref.Key
}

// SecretsOf reads Secrets by a clientset, from the store and not from a cache of
// the API server's.
func SecretsOf(client kubernetes.Interface) Secrets { return clientSecrets{client} }

type clientSecrets struct{ client kubernetes.Interface }

// Get takes the logger out of the context: client-go logs the bodies of answers at
// a high log level.
func (s clientSecrets) Get(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return s.client.CoreV1().Secrets(namespace).Get(klog.NewContext(ctx, logr.Discard()), name, metav1.GetOptions{})
}
