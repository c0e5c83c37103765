package kubeconfigfile

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// Origin says which placement a credential came from. Both may be empty.
type Origin struct{ Workload, RequestID string }

// Kubeconfig is KubeconfigOf without an origin.
func Kubeconfig(cell cellcastv1alpha1.CellReference, credential cellcastv1alpha1.Credential) ([]byte, error) {
	return KubeconfigOf(cell, credential, Origin{})
}

// KubeconfigOf returns a kubeconfig with one cell, one token and one context,
// whose namespace is that of the credential. Where the credential is revocable,
// the context carries what revoking it takes. It fails on an answer that kubectl
// could not use or that would send the token in the clear; the error holds no
// part of the token.
func KubeconfigOf(cell cellcastv1alpha1.CellReference, credential cellcastv1alpha1.Credential, from Origin) ([]byte, error) {
	if err := reachable(cell); err != nil {
		return nil, err
	}
	if credential.Token == "" || strings.ContainsFunc(credential.Token, notPrintable) {
		return nil, fmt.Errorf("the hub's answer has no usable token for cell %q", cell.Name)
	}
	user := credential.Namespace + "/" + credential.ServiceAccountName
	context := &clientcmdapi.Context{AuthInfo: user, Namespace: credential.Namespace}
	if Revocable(credential) {
		carried, err := carry(cell, credential, from)
		if err != nil {
			return nil, err
		}
		context.Extensions = map[string]runtime.Object{Extension: carried}
	}
	return write(cell, context, &clientcmdapi.AuthInfo{Token: credential.Token})
}

// TargetKubeconfig is Kubeconfig for a brought target, called by the name of its
// row.
func TargetKubeconfig(target cellcastv1alpha1.TargetReference, credential cellcastv1alpha1.Credential) ([]byte, error) {
	endpoint := cellcastv1alpha1.CellReference{Name: target.Name, Endpoint: target.Endpoint, CABundle: target.CABundle}
	content, err := Kubeconfig(endpoint, credential)
	if err != nil {
		return nil, fmt.Errorf("a kubeconfig for target %q, as for a cell: %w", target.Name, err)
	}
	return content, nil
}

// reachable refuses a cell that has no name or no https endpoint.
func reachable(cell cellcastv1alpha1.CellReference) error {
	endpoint, err := url.Parse(cell.Endpoint)
	switch {
	case cell.Name == "":
		return errors.New("the hub's answer names no cell")
	case err != nil || endpoint.Scheme != "https" || endpoint.Hostname() == "" || endpoint.User != nil:
		return fmt.Errorf("the hub's answer has no https endpoint for cell %q", cell.Name)
	default:
		return nil
	}
}

// write writes a kubeconfig of one cell, which is also its context's name.
func write(cell cellcastv1alpha1.CellReference, context *clientcmdapi.Context, user *clientcmdapi.AuthInfo) ([]byte, error) {
	context.Cluster = cell.Name
	config := clientcmdapi.NewConfig()
	config.Clusters[cell.Name] = &clientcmdapi.Cluster{Server: cell.Endpoint, CertificateAuthorityData: cell.CABundle}
	config.AuthInfos[context.AuthInfo] = user
	config.Contexts[cell.Name] = context
	config.CurrentContext = cell.Name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write a kubeconfig for cell %q: %w", cell.Name, err)
	}
	return content, nil
}

func notPrintable(r rune) bool { return r <= ' ' || r > '~' }
