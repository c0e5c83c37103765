package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// envExecInfo is where client-go says to a plugin what it wants.
const envExecInfo = "KUBERNETES_EXEC_INFO"

const execCredentialKind = "ExecCredential"

// parseExecInfo reads what client-go says. Fields that a newer one may add are
// passed over: the version is what it promises by.
func parseExecInfo(content string) (*clientauthentication.ExecCredential, error) {
	if content == "" {
		return nil, &usageError{"this is for kubectl and client-go to run, which set " + envExecInfo +
			": print a kubeconfig for them with credential kubeconfig"}
	}
	info := &clientauthentication.ExecCredential{}
	if err := json.Unmarshal([]byte(content), info); err != nil {
		return nil, errors.New(envExecInfo + " holds no ExecCredential")
	}
	if want := clientauthentication.SchemeGroupVersion.String(); info.APIVersion != want || info.Kind != execCredentialKind {
		return nil, fmt.Errorf("the kubeconfig asks for %s of %q, and this plugin answers %s of %s alone: correct apiVersion under users[].user.exec",
			printable(info.Kind), info.APIVersion, execCredentialKind, want)
	}
	return info, nil
}

// sameServer refuses to give a token to a server that isn't the cell, as a
// kubeconfig that somebody changed would have it. Without cluster information
// there is nothing to compare.
func sameServer(asked *clientauthentication.Cluster, cell cellcastv1alpha1.CellReference) error {
	var wrong string
	switch {
	case asked == nil:
		return nil
	case server(asked.Server) == "" || server(asked.Server) != server(cell.Endpoint):
		wrong = fmt.Sprintf("its server is %q, and that of the cell is %q", printable(asked.Server), printable(cell.Endpoint))
	case asked.InsecureSkipTLSVerify:
		wrong = "it has insecure-skip-tls-verify, so that any server could take the token"
	case asked.TLSServerName != "":
		wrong = "it has a tls-server-name, and the cell is known by its endpoint's"
	case !bytes.Equal(bytes.TrimSpace(asked.CertificateAuthorityData), bytes.TrimSpace(cell.CABundle)):
		wrong = "its certificate-authority-data isn't what the hub has for the cell"
	default:
		return nil
	}
	return fmt.Errorf("the token for cell %q is not given out: the kubeconfig doesn't lead there; %s. "+
		"If it's only old, print it anew with cellcast credential kubeconfig", cell.Name, wrong)
}

// server is a URL in one form, for comparing; empty where it's no https URL.
func server(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return strings.ToLower(u.Hostname()) + " " + port + " " + strings.TrimRight(u.EscapedPath(), "/")
}
