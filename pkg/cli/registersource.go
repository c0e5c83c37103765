package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/registration"
)

// cell is what the flags, the kubeconfig and the cell itself say.
func (o *registerOptions) cell(ctx context.Context, name string) (registration.Cell, error) {
	c := registration.Cell{
		Name:          name,
		Provider:      registryv1alpha1.ClusterProvider(o.provider),
		State:         registryv1alpha1.ClusterState(o.state),
		Labels:        o.labels,
		Issuer:        o.issuer,
		APIAudiences:  o.apiAudiences,
		Audience:      o.audience,
		MintAudiences: o.mintAudiences,
		MaxTTL:        o.maxTTL,
		Revocable:     o.revocable, RevocableQuota: o.revocableQuota,
		Hub: registration.Hub{Issuer: o.hubIssuer, MirrorURL: o.mirrorURL},
	}
	var err error
	if c.Agent, err = account("--agent", o.agent); err != nil {
		return c, err
	}
	if c.Hub.ServiceAccount, err = account("--hub-serviceaccount", o.hubAccount); err != nil {
		return c, err
	}
	for _, sa := range o.mint {
		minted, err := account("--mint", sa)
		if err != nil {
			return c, err
		}
		c.Mint = append(c.Mint, minted)
	}
	if o.mirrorCA != "" {
		if c.Hub.MirrorCA, err = os.ReadFile(o.mirrorCA); err != nil {
			return c, fmt.Errorf("read the mirror's CA: %w", err)
		}
	}
	if c.Endpoint, c.CABundle, err = o.address(); err != nil {
		return c, err
	}
	if c.Issuer == "" {
		c.Issuer, err = o.askIssuer(ctx)
	}
	return c, err
}

// account reads namespace/name.
func account(flag, value string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(value, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, &usageError{fmt.Sprintf("%s %q: must be namespace/name of a ServiceAccount", flag, value)}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// kubeconfigContext is a context of a kubeconfig.
func kubeconfigContext(path, context string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
}

// address takes the cell's address and CA from the kubeconfig, as data, and
// nothing else. It refuses a cluster entry that a hub could not use as it is.
func (o *registerOptions) address() (endpoint string, caBundle []byte, err error) {
	config, err := kubeconfigContext(o.kubeconfig, o.context).RawConfig()
	if err != nil {
		return "", nil, fmt.Errorf("read the kubeconfig of the cell: %w", err)
	}
	entry := config.Contexts[o.context]
	if entry == nil {
		return "", nil, fmt.Errorf("the kubeconfig has no context %q: kubectl config get-contexts lists those that it has", o.context)
	}
	cluster := config.Clusters[entry.Cluster]
	switch {
	case cluster == nil:
		return "", nil, fmt.Errorf("the kubeconfig's context %q names a cluster %q that isn't in it", o.context, entry.Cluster)
	case cluster.InsecureSkipTLSVerify:
		return "", nil, fmt.Errorf("the kubeconfig's cluster %q has insecure-skip-tls-verify: whoever answers at that address would be given the hub's tokens; put the cell's CA there instead", entry.Cluster)
	case o.endpoint == "" && cluster.ProxyURL != "":
		return "", nil, fmt.Errorf("the kubeconfig's cluster %q has a proxy-url, and the hub goes to cells directly: name an address that it reaches with --endpoint", entry.Cluster)
	case o.endpoint == "" && cluster.TLSServerName != "":
		return "", nil, fmt.Errorf("the kubeconfig's cluster %q has a tls-server-name: name an address with --endpoint that is in the cell's certificate", entry.Cluster)
	}
	caBundle = cluster.CertificateAuthorityData
	if len(caBundle) == 0 && cluster.CertificateAuthority != "" {
		if caBundle, err = os.ReadFile(cluster.CertificateAuthority); err != nil {
			return "", nil, fmt.Errorf("read the CA of the cell: %w", err)
		}
	}
	if o.endpoint != "" {
		return o.endpoint, caBundle, nil
	}
	return cluster.Server, caBundle, nil
}

// askIssuer asks the cell what it calls itself in tokens.
func (o *registerOptions) askIssuer(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	config, err := kubeconfigContext(o.kubeconfig, o.context).ClientConfig()
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig of the cell: %w", err)
	}
	config.GroupVersion = &schema.GroupVersion{}
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return "", fmt.Errorf("connect to the cell: %w", err)
	}
	answer, err := client.Get().AbsPath("/.well-known/openid-configuration").MaxRetries(0).DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("ask the cell for its issuer, which --reporter-issuer can name instead: %w", err)
	}
	var document struct {
		Issuer string `json:"issuer"`
	}
	if err := json.Unmarshal(answer, &document); err != nil || document.Issuer == "" {
		return "", errors.New("the cell's discovery document names no issuer: name it with --reporter-issuer")
	}
	return document.Issuer, nil
}
