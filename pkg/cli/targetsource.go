package cli

import (
	"fmt"
	"os"

	"cellcast.io/cellcast/pkg/cli/bring"
	"cellcast.io/cellcast/pkg/cli/door"
	"cellcast.io/cellcast/pkg/cli/terminal"
	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/secret"
)

// maxTargetKubeconfig is the most that is read of the user's kubeconfig, in bytes.
const maxTargetKubeconfig = 4 << 20

// targetSource is the user's kubeconfig, and what of it the hub gets.
type targetSource struct {
	*bring.Source
	server string
	ca     []byte
	// token is empty where one is made on the target.
	token secret.Value
}

// targetSource reads the user's kubeconfig; nil where none is named. It refuses,
// with all its reasons, what the hub couldn't use and no flag makes up for.
func (e Env) targetSource(o *targetRegisterOptions) (*targetSource, error) {
	if o.filename == "" {
		return nil, nil
	}
	content, err := readInput(o.filename, maxTargetKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the target: %w", err)
	}
	path := o.filename
	if path == "-" {
		path = ""
	}
	read, err := bring.Read(content, path, o.context)
	if err != nil {
		return nil, &usageError{fmt.Sprintf("the kubeconfig %s can't be used: %v", o.filename, err)}
	}
	s := &targetSource{Source: read, server: o.endpoint}
	if s.server == "" {
		s.server = read.Server()
	}
	if s.ca, err = o.targetCA(read); err != nil {
		return nil, err
	}
	if err := e.sayRefusals(o, read); err != nil {
		return nil, err
	}
	if len(s.ca) == 0 {
		return nil, &usageError{fmt.Sprintf("context %q names no CA, and the hub trusts no public one by itself: name the file with the CA of the target's API with --certificate-authority", read.Context)}
	}
	if o.createCredential {
		return s, nil
	}
	s.token = read.Token()
	return s, e.lasting(s.token)
}

// closed is what the hub gets of the kubeconfig, with this token.
func (s *targetSource) closed(token secret.Value) (kubeconfig.Kubeconfig, error) {
	closed, err := kubeconfig.New(s.server, s.ca, token)
	if err != nil {
		return closed, &usageError{"the hub wouldn't take this kubeconfig: " + err.Error()}
	}
	return closed, nil
}

// targetCA is the CA that a flag names, else the kubeconfig's.
func (o *targetRegisterOptions) targetCA(source *bring.Source) ([]byte, error) {
	if o.caFile == "" {
		return source.CA()
	}
	bundle, err := os.ReadFile(o.caFile)
	if err != nil {
		return nil, fmt.Errorf("read --certificate-authority: %w", err)
	}
	return bring.CertificatesOf("--certificate-authority", bundle)
}

// sayRefusals says what the closed form can't carry and, with the error, what to
// run instead. What a flag makes up for isn't an error.
func (e Env) sayRefusals(o *targetRegisterOptions, source *bring.Source) error {
	var open []*kubeconfig.Error
	credential, place := false, false
	for _, refused := range source.Refusals() {
		if o.madeUpFor(refused) {
			continue
		}
		open = append(open, refused)
		if bring.OfCredential(refused) {
			credential = true
		} else {
			place = true
		}
	}
	if len(open) == 0 {
		return nil
	}
	e.say("What the hub takes of a kubeconfig can't carry this of context %q:", source.Context)
	for _, refused := range open {
		e.say("  %s", terminal.Printable(refused.Error()))
	}
	const makes = "--create-credential makes a token for the hub on the target, with that login of yours"
	const names = "--endpoint and --certificate-authority name the address and the CA for the hub, where those of the kubeconfig are for you alone"
	switch {
	case credential && place:
		return &usageError{"the kubeconfig can't be registered as it is: " + makes + "; " + names}
	case credential:
		return &usageError{"the kubeconfig can't be registered as it is: " + makes}
	default:
		return &usageError{"the kubeconfig can't be registered as it is: " + names}
	}
}

// madeUpFor reports whether a flag gives what the context can't.
func (o *targetRegisterOptions) madeUpFor(refused *kubeconfig.Error) bool {
	if bring.OfCredential(refused) {
		return o.createCredential
	}
	switch refused.Rule {
	case kubeconfig.InsecureSkipTLS:
		return o.caFile != ""
	case kubeconfig.ProxyURL, kubeconfig.TLSServerName, kubeconfig.MissingField, kubeconfig.EmptyValue,
		kubeconfig.ServerScheme, kubeconfig.ServerUserinfo, kubeconfig.ServerQuery,
		kubeconfig.ServerPath, kubeconfig.ServerHost, kubeconfig.ServerPort:
		return o.endpoint != ""
	default:
		return false
	}
}

// lasting refuses a token that has ended, and warns of one that will.
func (e Env) lasting(token secret.Value) error {
	claims, ok := door.ClaimsOf(token.Reveal())
	switch {
	case !ok || claims.Expiry.IsZero():
		return nil
	case !claims.Expiry.After(e.Now()):
		return &usageError{"the kubeconfig's token ended at " + clock(claims.Expiry) + ": log in again, or let --create-credential make one that lasts"}
	}
	e.say("Warning: the token ends at %s, and the target with it. --create-credential makes one that lasts.", clock(claims.Expiry))
	return nil
}
