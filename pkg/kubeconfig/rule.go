package kubeconfig

// Rule is the name of a rule that a kubeconfig can break.
type Rule string

// The rules. There are no others.
const (
	// Of the text.
	TooLarge         Rule = "TooLarge"
	Encoding         Rule = "Encoding"
	ControlCharacter Rule = "ControlCharacter"
	Directive        Rule = "Directive"
	Syntax           Rule = "Syntax"
	Empty            Rule = "Empty"
	SeveralDocuments Rule = "SeveralDocuments"
	// Of YAML.
	Alias    Rule = "Alias"
	MergeKey Rule = "MergeKey"
	Tag      Rule = "Tag"
	TooDeep  Rule = "TooDeep"
	Block    Rule = "Block"
	// Of the shape.
	Type           Rule = "Type"
	DuplicateField Rule = "DuplicateField"
	UnknownField   Rule = "UnknownField"
	MissingField   Rule = "MissingField"
	EmptyValue     Rule = "EmptyValue"
	Version        Rule = "Version"
	Name           Rule = "Name"
	NameMismatch   Rule = "NameMismatch"
	OneCluster     Rule = "OneCluster"
	OneUser        Rule = "OneUser"
	OneContext     Rule = "OneContext"
	// Of features that stay outside.
	Exec                 Rule = "Exec"
	AuthProvider         Rule = "AuthProvider"
	TokenFile            Rule = "TokenFile"
	ClientCertificate    Rule = "ClientCertificate"
	BasicAuth            Rule = "BasicAuth"
	Impersonation        Rule = "Impersonation"
	CertificateAuthority Rule = "CertificateAuthority"
	InsecureSkipTLS      Rule = "InsecureSkipTLS"
	TLSServerName        Rule = "TLSServerName"
	ProxyURL             Rule = "ProxyURL"
	Compression          Rule = "Compression"
	Namespace            Rule = "Namespace"
	Extensions           Rule = "Extensions"
	Preferences          Rule = "Preferences"
	// Of the values.
	ServerScheme   Rule = "ServerScheme"
	ServerUserinfo Rule = "ServerUserinfo"
	ServerQuery    Rule = "ServerQuery"
	ServerPath     Rule = "ServerPath"
	ServerHost     Rule = "ServerHost"
	ServerPort     Rule = "ServerPort"
	AddressDenied  Rule = "AddressDenied"
	PortDenied     Rule = "PortDenied"
	CAData         Rule = "CAData"
	Token          Rule = "Token"
	Omitted        Rule = "Omitted"
)

// Meaning is what is fixed about a rule; docs/kubeconfig.md has the same table.
type Meaning struct {
	Rule Rule
	// Means says what is refused, as a clause.
	Means string
	// Why says what could come of it.
	Why string
	// Do is what to do instead.
	Do string
}

// meaning is the row of a rule.
func meaning(rule Rule) Meaning {
	for _, m := range Meanings() {
		if m.Rule == rule {
			return m
		}
	}
	return Meaning{Rule: rule}
}
