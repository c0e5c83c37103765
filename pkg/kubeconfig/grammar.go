package kubeconfig

import (
	"encoding/base64"

	"go.yaml.in/yaml/v3"

	"cellcast.io/cellcast/pkg/secret"
)

// Where the three values stand.
const (
	serverField = "clusters[0].cluster.server"
	caField     = "clusters[0].cluster.certificate-authority-data"
	tokenField  = "users[0].user.token" //nolint:gosec // the path of a field
)

// The grammar: each mapping with the fields that a kubeconfig can have there.
func configFields() fields {
	return fields{
		"apiVersion": "", "kind": "", "current-context": "", "clusters": "", "users": "", "contexts": "",
		// kubectl has always written preferences: {}.
		"preferences": "",
		"extensions":  Extensions,
	}
}

func clusterFields() fields {
	return fields{
		"server": "", "certificate-authority-data": "",
		"certificate-authority":    CertificateAuthority,
		"insecure-skip-tls-verify": InsecureSkipTLS,
		"tls-server-name":          TLSServerName,
		"proxy-url":                ProxyURL,
		"disable-compression":      Compression,
		"extensions":               Extensions,
	}
}

func userFields() fields {
	return fields{
		"token":                   "",
		"exec":                    Exec,
		"auth-provider":           AuthProvider,
		"tokenFile":               TokenFile,
		"client-certificate":      ClientCertificate,
		"client-certificate-data": ClientCertificate,
		"client-key":              ClientCertificate,
		"client-key-data":         ClientCertificate,
		"username":                BasicAuth,
		"password":                BasicAuth,
		"as":                      Impersonation,
		"as-uid":                  Impersonation,
		"as-groups":               Impersonation,
		"as-user-extra":           Impersonation,
		"extensions":              Extensions,
	}
}

func contextFields() fields {
	return fields{"cluster": "", "user": "", "namespace": Namespace, "extensions": Extensions}
}

// config reads the whole.
func (r *reader) config(root *yaml.Node) Kubeconfig {
	taken := r.mapping("", root, configFields())
	field := func(name string) *yaml.Node { return r.field("", root, taken, name) }

	r.literal("apiVersion", field("apiVersion"), "v1")
	r.literal("kind", field("kind"), "Config")
	r.empty("preferences", taken["preferences"])
	clusterName, k := r.cluster(field("clusters"))
	userName, token := r.user(field("users"))
	k.Token = token
	r.context(field("contexts"), field("current-context"), clusterName, userName)
	return k
}

// literal refuses another text than the one.
func (r *reader) literal(path string, n *yaml.Node, want string) {
	if got := r.text(path, n); got != "" && got != want {
		r.refuse(refuseAsIs(Version).at(path, n.Line))
	}
}

// empty refuses anything but {}.
func (r *reader) empty(path string, n *yaml.Node) {
	if n != nil && (n.Kind != yaml.MappingNode || len(n.Content) > 0) {
		r.refuse(refuseAsIs(Preferences).at(path, n.Line))
	}
}

func (r *reader) cluster(list *yaml.Node) (name string, k Kubeconfig) {
	name, body := r.entry("clusters", "cluster", list, OneCluster)
	const path = "clusters[0].cluster"
	taken := r.mapping(path, body, clusterFields())

	server := r.field(path, body, taken, "server")
	if text := r.text(serverField, server); text != "" {
		r.serverLine = server.Line
		var refused *Error
		if k, refused = parseServer(text); refused != nil {
			r.refuse(refused.at(serverField, server.Line))
		}
	}
	ca := r.secondary(path, body, taken, "certificate-authority-data")
	if text := r.text(caField, ca); text != "" {
		var refused *Error
		if k.CAData, refused = parseCA(text); refused != nil {
			r.refuse(refused.at(caField, ca.Line))
		}
	}
	return name, k
}

// parseCA reads the base64 of the CA data.
func parseCA(text string) ([]byte, *Error) {
	if text == "DATA+OMITTED" { // kubectl config view's own words, which are base64 by chance
		return nil, refuseAsIs(Omitted)
	}
	// Strictly, and without the line breaks that Go would pass over.
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || base64.StdEncoding.EncodeToString(data) != text {
		return nil, refuse(CAData, "this isn't standard base64 on one line")
	}
	if refused := checkCA(data); refused != nil {
		return nil, refused
	}
	return data, nil
}

func (r *reader) user(list *yaml.Node) (name string, token secret.Value) {
	name, body := r.entry("users", "user", list, OneUser)
	const path = "users[0].user"
	taken := r.mapping(path, body, userFields())
	n := r.secondary(path, body, taken, "token")
	text := r.text(tokenField, n)
	if text == "" {
		return name, secret.Value{}
	}
	if refused := checkToken(text); refused != nil {
		r.refuse(refused.at(tokenField, n.Line))
	}
	return name, secret.New(text)
}

func (r *reader) context(list, current *yaml.Node, clusterName, userName string) {
	name, body := r.entry("contexts", "context", list, OneContext)
	const path = "contexts[0].context"
	taken := r.mapping(path, body, contextFields())
	r.names(path+".cluster", r.field(path, body, taken, "cluster"), clusterName)
	r.names(path+".user", r.field(path, body, taken, "user"), userName)
	r.names("current-context", current, name)
}

// entry reads the only item of a list of names with something: its name, and the
// mapping under the key.
func (r *reader) entry(list, key string, n *yaml.Node, rule Rule) (name string, body *yaml.Node) {
	only := r.one(list, n, rule)
	path := item(list, 0)
	taken := r.mapping(path, only, fields{"name": "", key: ""})
	return r.name(join(path, "name"), r.field(path, only, taken, "name")), r.field(path, only, taken, key)
}

// maxName is the longest name, in bytes.
const maxName = 253

func (r *reader) name(path string, n *yaml.Node) string {
	name := r.text(path, n)
	if name == "" {
		return ""
	}
	if len(name) > maxName || !isPrintable(name, ' ') {
		r.refuse(refuseAsIs(Name).at(path, n.Line))
		return ""
	}
	return name
}

// names refuses another name than that of the entry, where it has one.
func (r *reader) names(path string, n *yaml.Node, entry string) {
	if name := r.name(path, n); name != "" && entry != "" && name != entry {
		r.refuse(refuseAsIs(NameMismatch).at(path, n.Line))
	}
}

// isPrintable reports whether the text is ASCII from the first character to ~.
func isPrintable(text string, first byte) bool {
	for i := range len(text) {
		if text[i] < first || text[i] > '~' {
			return false
		}
	}
	return true
}
