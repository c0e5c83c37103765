package kubeconfig

const (
	inlineToken = "put a ServiceAccount's long-lived token into users[0].user.token: cellcast target register makes one" //nolint:gosec // a piece of advice
	minify      = "kubectl config view --minify --flatten --raw prints the current context's part alone"
	raw         = "kubectl config view --raw leaves nothing out"
	mend        = "mend it, or let cellcast target register write the file"
	remove      = "remove the field"
)

// Meanings is the table of the rules: of the text, of YAML, of the shape, of
// features, of values.
func Meanings() []Meaning {
	return []Meaning{
		{TooLarge, "the file is over 64 KiB", "whoever registers could take the hub's memory", minify},
		{Encoding, "the file isn't UTF-8 without a byte order mark", "two readers could see two files", "save it as UTF-8 without a mark"},
		{ControlCharacter, "the file has a character that doesn't print, or a carriage return alone", "what an editor shows and what is read could differ", "remove the character"},
		{Directive, "a line begins with %", "a directive changes what the rest of a YAML file means", "remove the line"},
		{Syntax, "the file is neither YAML nor JSON", "nothing can be said of it", mend},
		{Empty, "the file holds nothing", "there is no server and no token in it", "let cellcast target register write the file"},
		{SeveralDocuments, "the file holds more than one document", "readers differ in which one they take", "keep one and remove what follows ---"},

		{Alias, "it has an anchor or an alias", "a short file could stand for an endless one, and a value hide behind a name", "write the value where it's meant"},
		{MergeKey, "it has a merge key", "fields would come from somewhere else in the file", "write the fields where they are meant"},
		{Tag, "it has a tag", "a tag changes what a value is read as", "remove the tag"},
		{TooDeep, "it's nested deeper than 16 levels", "no kubeconfig is", mend},
		{Block, "the text stands in a block of lines", "readers differ in where such a block ends", "write it on one line, in double quotes"},

		{Type, "the value is of another type than the field's", "readers differ in what text they make of a number, a date, or a yes", "write it as what the field is; text that could be read as something else goes into double quotes"},
		{DuplicateField, "the field stands here twice", "readers differ in which one they take", "keep one of the two"},
		{UnknownField, "there is a field that no kubeconfig has; case counts", "a field that one reader passes over could mean something to another", remove},
		{MissingField, "a field is missing", "the closed form needs it", "add it"},
		{EmptyValue, "the value is empty", "an empty value would be filled in from somewhere else", "give it a value"},
		{Version, "it isn't a Config of v1", "there is no other kind of kubeconfig", "write apiVersion: v1 and kind: Config"},
		{Name, "the name isn't 1 to 253 printable ASCII characters", "names are compared, and must look the same when they are", "choose a plainer name"},
		{NameMismatch, "the name isn't that of the one entry there is", "which entry is meant would be a guess", "name the same cluster, user and context everywhere"},
		{OneCluster, "there must be exactly one cluster", "which one is meant would be a guess, and the others would be stored for nothing", minify},
		{OneUser, "there must be exactly one user", "which one is meant would be a guess, and other credentials would be stored for nothing", minify},
		{OneContext, "there must be exactly one context", "which one is meant would be a guess", minify},

		{Exec, "exec names a program that gets the token", "the hub would run a program that the file names", inlineToken},
		{AuthProvider, "auth-provider names a plugin that gets the token", "the hub would ask whoever the file names for a token", inlineToken},
		{TokenFile, "tokenFile names a file that holds the token", "the hub would send a file of its own to a server that the file names", inlineToken},
		{ClientCertificate, "a client certificate or key is a second credential", "it can't be revoked, and two credentials of one file could be two identities", inlineToken + "; remove client-certificate, client-key and their -data forms"},
		{BasicAuth, "username and password are no token", "Kubernetes has taken none since 1.19", inlineToken},
		{Impersonation, "as, as-uid, as-groups and as-user-extra act as somebody else", "the probe would see other rights than the credential has", "register the credential of the ServiceAccount itself"},
		{CertificateAuthority, "certificate-authority names a file that holds the CA", "the file would be one of the hub's", "put the CA's certificates in base64 into certificate-authority-data: kubectl config view --flatten --raw does"},
		{InsecureSkipTLS, "insecure-skip-tls-verify turns the check of the server off, and has no place here even when false", "whoever answers at that address would be given the token", "remove the field and put the cluster's CA into certificate-authority-data"},
		{TLSServerName, "tls-server-name expects another name than the server's", "the hub would take one server for another", "remove the field and use an address that is in the server's certificate"},
		{ProxyURL, "proxy-url sends the connection through a proxy", "the hub's connections would go wherever the file says, past the check of addresses", "remove the field and use an address that the hub reaches by itself"},
		{Compression, "disable-compression is the client's own matter", "the hub decides how it talks", remove},
		{Namespace, "the context has a namespace", "the target's row has one, and two could differ", "remove the field: spec.namespace of the ClusterTarget says it"},
		{Extensions, "extensions hold what other programs put there", "what no rule reads could hold anything, a second credential too", remove},
		{Preferences, "preferences aren't empty", "they are of a person at a terminal", "remove the field, or leave it as {}"},

		{ServerScheme, "the server's URL doesn't begin with https://", "the token would go over the wire in the clear", "write https:// and the API server's host"},
		{ServerUserinfo, "the server's URL has a user or password", "it would be a second credential, and what looks like the host may not be it", "remove all up to the @"},
		{ServerQuery, "the server's URL has a query or a fragment", "an API server's address has none", "remove the ? or # and what follows"},
		{ServerPath, "the server's path isn't of plain segments", "a path that is rewritten on its way could lead elsewhere", "use letters, digits and -._~ between single slashes, without . and .. alone"},
		{ServerHost, "the server's host isn't plainly a name or an IP address", "readers differ in what they make of other forms of it", "write a full domain name of letters, digits, - and . (an international one as xn--), or an IP address in its usual form"},
		{ServerPort, "the server's port isn't a number from 1 to 65535", "readers differ in what they make of it", "write the port in decimal digits, or none for 443"},
		{AddressDenied, "the hub doesn't connect to this address", "it would reach the hub's own surroundings: loopback, link-local, metadata services, and multicast are denied", "use the address that other machines reach the API server by"},
		{PortDenied, "the hub doesn't connect to this port", "it could be made to knock on any port there is", "serve the API on a port that the hub's operator permits, or ask for this one to be permitted"},
		{CAData, "the CA data isn't certificates alone", "the hub would trust other servers than the cluster's, or keep a private key", "put 1 to 32 certificates in PEM, at least one of a CA, in base64 on one line"},
		{Token, "the token isn't 1 to 16384 printable ASCII characters without blanks", "it's sent as a header of HTTP", "put in the token itself, not in base64 and without line breaks"},
		{Omitted, "the value was left out when the file was printed", "there is nothing to connect with", raw},
	}
}
