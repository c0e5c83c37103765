package kubeconfigfile

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// Kubeconfig returns a kubeconfig with one cell, one token and one context,
// whose namespace is that of the credential. It fails on an answer that kubectl
// could not use or that would send the token in the clear; the error holds no
// part of the token.
func Kubeconfig(cell cellcastv1alpha1.CellReference, credential cellcastv1alpha1.Credential) ([]byte, error) {
	endpoint, err := url.Parse(cell.Endpoint)
	switch {
	case cell.Name == "":
		return nil, errors.New("the hub's answer names no cell")
	case err != nil || endpoint.Scheme != "https" || endpoint.Hostname() == "" || endpoint.User != nil:
		return nil, fmt.Errorf("the hub's answer has no https endpoint for cell %q", cell.Name)
	case credential.Token == "" || strings.ContainsFunc(credential.Token, notPrintable):
		return nil, fmt.Errorf("the hub's answer has no usable token for cell %q", cell.Name)
	}
	user := credential.Namespace + "/" + credential.ServiceAccountName
	config := clientcmdapi.NewConfig()
	config.Clusters[cell.Name] = &clientcmdapi.Cluster{Server: cell.Endpoint, CertificateAuthorityData: cell.CABundle}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: credential.Token}
	config.Contexts[cell.Name] = &clientcmdapi.Context{Cluster: cell.Name, AuthInfo: user, Namespace: credential.Namespace}
	config.CurrentContext = cell.Name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write a kubeconfig for cell %q: %w", cell.Name, err)
	}
	return content, nil
}

func notPrintable(r rune) bool { return r <= ' ' || r > '~' }
