// Package bring makes everything that registers a brought target, out of a
// kubeconfig that works and a few facts: the closed kubeconfig for the hub, the
// narrow credential on the target, and the row at the hub with what lets the hub
// read that one Secret. `cellcast target register` prints it or creates it.
//
// The user's kubeconfig is read by client-go's own loader, for it's the user's
// file on the user's machine, and is used to act on the target as the user. What
// goes to the hub is built from three values of it, and from nothing else. No error
// quotes anything of the file.
package bring

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"cellcast.io/cellcast/pkg/cli/certificates"
	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/secret"
)

// Source is one context of a user's own kubeconfig.
type Source struct {
	// Context is the context's name.
	Context string

	config  *clientcmdapi.Config
	cluster *clientcmdapi.Cluster
	user    *clientcmdapi.AuthInfo
}

// Read reads a context of a kubeconfig, the current one where none is named. Files
// that it names are found from the path, or from the working directory where that
// is empty.
func Read(content []byte, path, context string) (*Source, error) {
	config, err := clientcmd.Load(content)
	if err != nil { // whose words can be those of the file
		return nil, errors.New("it's no kubeconfig that kubectl could read; kubectl config view says why")
	}
	if context == "" {
		context = config.CurrentContext
	}
	if context == "" {
		return nil, errors.New("it has no current context: name one with --context; kubectl config get-contexts lists them")
	}
	entry := config.Contexts[context]
	if entry == nil {
		return nil, fmt.Errorf("it has no context %q: kubectl config get-contexts lists those that it has", context)
	}
	cluster, user := config.Clusters[entry.Cluster], config.AuthInfos[entry.AuthInfo]
	switch {
	case cluster == nil:
		return nil, fmt.Errorf("its context %q names a cluster that isn't in it", context)
	case user == nil:
		return nil, fmt.Errorf("its context %q names a user that isn't in it", context)
	}
	config.CurrentContext = context
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return nil, fmt.Errorf("take context %q out of it: %w", context, err)
	}
	cluster, user = config.Clusters[entry.Cluster], config.AuthInfos[entry.AuthInfo]
	cluster.LocationOfOrigin, user.LocationOfOrigin = path, path
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, fmt.Errorf("find the files that context %q names: %w", context, err)
	}
	return &Source{Context: context, config: config, cluster: cluster, user: user}, nil
}

// Server is the address of the target's API, as the file has it.
func (s *Source) Server() string { return s.cluster.Server }

// Token is the inline token; it's empty where the context has none, or gets its
// credential in a way that the closed form can't carry.
func (s *Source) Token() secret.Value {
	for _, refused := range s.Refusals() {
		if OfCredential(refused) {
			return secret.Value{}
		}
	}
	return secret.New(s.user.Token)
}

// CA is the certificates to check the target's API by, and nothing else that
// stands beside them. It's empty where the context names none.
func (s *Source) CA() ([]byte, error) {
	bundle := s.cluster.CertificateAuthorityData
	if len(bundle) == 0 && s.cluster.CertificateAuthority != "" {
		var err error
		if bundle, err = os.ReadFile(s.cluster.CertificateAuthority); err != nil {
			return nil, fmt.Errorf("read the CA that the kubeconfig names: %w", err)
		}
	}
	return CertificatesOf("the CA of the kubeconfig", bundle)
}

// CertificatesOf is the certificates in a bundle that is called what.
func CertificatesOf(what string, bundle []byte) ([]byte, error) {
	out, err := certificates.Encode(bundle)
	if err != nil {
		return nil, fmt.Errorf("%s %w", what, err)
	}
	return out, nil
}

// ClientConfig is how to act on the target as the user does.
func (s *Source) ClientConfig() (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveClientConfig(*s.config, s.Context, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("use context %q: %w", s.Context, err)
	}
	return config, nil
}

// Refusals is what the closed form can't carry of the context. What registering
// takes care of isn't among it: names, the namespace, files that hold the CA.
func (s *Source) Refusals() []*kubeconfig.Error {
	data, err := clientcmd.Write(*s.config)
	if err != nil { // it was read from the same form
		return nil
	}
	var left []*kubeconfig.Error
	for _, refused := range kubeconfig.Refusals(data) {
		if takenCareOf(refused) {
			continue
		}
		refused.Line = 0 // that of our own copy
		left = append(left, refused)
	}
	return left
}

func takenCareOf(e *kubeconfig.Error) bool {
	switch e.Rule {
	case kubeconfig.Namespace, kubeconfig.Extensions, kubeconfig.Preferences, kubeconfig.Compression,
		kubeconfig.Name, kubeconfig.NameMismatch, kubeconfig.CertificateAuthority, kubeconfig.TooLarge:
		return true
	case kubeconfig.MissingField, kubeconfig.EmptyValue, kubeconfig.CAData:
		// What CA says of these has more to it.
		return strings.HasPrefix(e.Field, "clusters[0].cluster") && !strings.HasSuffix(e.Field, ".server")
	default:
		return false
	}
}

// OfCredential reports whether a refusal is about how the user authenticates: a
// credential that is made for the hub cures it.
func OfCredential(e *kubeconfig.Error) bool { return strings.HasPrefix(e.Field, "users") }
