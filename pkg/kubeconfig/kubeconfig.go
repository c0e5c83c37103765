// Package kubeconfig reads the kubeconfig of a brought target by a closed
// grammar: one cluster with an https address and inline CA certificates, one user
// with an inline bearer token, one context that joins them, and nothing else.
// What an ordinary loader would follow (a program to run, a file to read, a proxy,
// another server name) is refused by name, so a crafted file can't make the hub do
// anything but talk to that server with that token.
//
// It shares no code with client-go's loader: bytes become a Kubeconfig or an
// *Error, and whoever connects builds the client from the Kubeconfig alone. An
// *Error says which field, on which line, by which rule, and what to do instead;
// it never quotes a value.
//
// The address is read by its form alone here: a name isn't resolved. What a name
// stands for is checked where the connection is made (package dial).
package kubeconfig

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"

	"cellcast.io/cellcast/pkg/kubeconfig/address"
	"cellcast.io/cellcast/pkg/secret"
)

// Kubeconfig is all that a brought target's kubeconfig can say.
type Kubeconfig struct {
	// Server is the address of the API: https://host, with the port unless it's
	// 443, and with the path where there is one. Host and names are in lower case.
	Server string
	// Host is the host in it: a name of two labels or more, localhost, or an IP
	// address without brackets.
	Host string
	// Port is the port in it, 443 where it has none.
	Port uint16
	// CAData is one to 32 certificates in PEM, at least one of a CA, and nothing else.
	// RSA keys in it have 8192 bits at most.
	CAData []byte
	// Token is the bearer token: printable ASCII without blanks.
	Token secret.Value
}

// Parse reads a kubeconfig in YAML or JSON. The error is an *Error: of several,
// the first in the file.
func Parse(data []byte) (Kubeconfig, error) {
	k, _, errs := read(data)
	if len(errs) > 0 {
		return Kubeconfig{}, errs[0]
	}
	return k, nil
}

// ParsePermitted is Parse for the hub, which connects to some addresses and ports
// alone: it refuses a server whose address, where it's written as one, or whose
// port isn't among them. That is help for who writes the file, not the defence: a
// name is checked where the connection is made.
func ParsePermitted(data []byte, permitted address.Policy) (Kubeconfig, error) {
	k, serverLine, errs := read(data)
	if len(errs) == 0 {
		if refused := checkAddress(k, permitted); refused != nil {
			errs = append(errs, refused.at(serverField, serverLine))
		}
	}
	if len(errs) > 0 {
		return Kubeconfig{}, errs[0]
	}
	return k, nil
}

// Refusals is what Parse refuses in the file, in the order of its lines: what
// somebody has to change in it before it's taken. What can't be read at all ends the
// list, and so do 64 wrong fields: more may follow once those are mended.
func Refusals(data []byte) []*Error {
	_, _, errs := read(data)
	return errs
}

// New is the Kubeconfig of these three, checked as Parse checks them. The error is
// an *Error without a line.
func New(server string, caData []byte, token secret.Value) (Kubeconfig, error) {
	k, refused := parseServer(server)
	if refused != nil {
		return Kubeconfig{}, refused.at(serverField, 0)
	}
	if refused := checkCA(caData); refused != nil {
		return Kubeconfig{}, refused.at(caField, 0)
	}
	if refused := checkToken(token.Reveal()); refused != nil {
		return Kubeconfig{}, refused.at(tokenField, 0)
	}
	k.CAData, k.Token = slices.Clone(caData), token
	return k, nil
}

// Encode is the file that Parse reads to this Kubeconfig. It holds the token.
func (k Kubeconfig) Encode() []byte {
	// Printable ASCII in Go's quotes is the same text in YAML's.
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: target
clusters:
- name: target
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: target
  user:
    token: %s
contexts:
- name: target
  context:
    cluster: target
    user: target
`, k.Server, base64.StdEncoding.EncodeToString(k.CAData), strconv.Quote(k.Token.Reveal()))
}

// read is the whole way from bytes to a Kubeconfig, and the line of the server for
// what is said of its address afterwards.
func read(data []byte) (k Kubeconfig, serverLine int, errs []*Error) {
	if refused := checkText(data); refused != nil {
		return Kubeconfig{}, 0, []*Error{refused}
	}
	root, refused := parseTree(data)
	if refused != nil {
		return Kubeconfig{}, 0, []*Error{refused}
	}
	if refused := checkTree(root); refused != nil {
		return Kubeconfig{}, 0, []*Error{refused}
	}
	r := reader{}
	k = r.config(root)
	if len(r.errs) > 0 {
		slices.SortStableFunc(r.errs, func(a, b *Error) int { return a.Line - b.Line })
		return Kubeconfig{}, 0, r.errs
	}
	return k, r.serverLine, nil
}
