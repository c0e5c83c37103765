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
	"cellcast.io/cellcast/pkg/cli/terminal"
)

// envExecInfo is where client-go says to a plugin what it wants.
const envExecInfo = "KUBERNETES_EXEC_INFO"

const execCredentialKind = "ExecCredential" //nolint:gosec // the name of a kind

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
			terminal.Printable(info.Kind), info.APIVersion, execCredentialKind, want)
	}
	return info, nil
}

// fitServer refuses a kubeconfig by which no token can be given out, whatever the
// cell is: it is called before one is minted. Without cluster information there
// is nothing to check.
func fitServer(asked *clientauthentication.Cluster, cell string) error {
	var wrong string
	switch {
	case asked == nil:
		return nil
	case server(asked.Server) == "":
		wrong = fmt.Sprintf("its server is %q, which is no https URL of a cell", terminal.Printable(asked.Server))
	case asked.InsecureSkipTLSVerify:
		wrong = "it has insecure-skip-tls-verify, so that any server could take the token"
	case asked.TLSServerName != "":
		wrong = "it has a tls-server-name, and the cell is known by its endpoint's"
	default:
		return nil
	}
	return fmt.Errorf("no token for cell %q is asked for: %w", cell, notThere(wrong))
}

// sameServer refuses to give a token to a server that isn't the cell, as a
// kubeconfig that somebody changed would have it, and that fitServer has let
// pass. The hub says where the cell is
// in the answer that has the token: to ask before would be one question more for
// each token. Without cluster information there is nothing to compare.
func sameServer(asked *clientauthentication.Cluster, cell cellcastv1alpha1.CellReference) error {
	switch {
	case asked == nil:
		return nil
	case server(asked.Server) != server(cell.Endpoint):
		return notThere(fmt.Sprintf("its server is %q, and that of the cell is %q", terminal.Printable(asked.Server), terminal.Printable(cell.Endpoint)))
	case !bytes.Equal(bytes.TrimSpace(asked.CertificateAuthorityData), bytes.TrimSpace(cell.CABundle)):
		return notThere("its certificate-authority-data isn't what the hub has for the cell")
	default:
		return nil
	}
}

// notThere says what is wrong with a kubeconfig.
func notThere(wrong string) error {
	return fmt.Errorf("the kubeconfig doesn't lead there; %s. If it's only old, print it anew with cellcast credential kubeconfig", wrong)
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
