package kubeconfigfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/revocation"
)

// Extension is the name under which a context carries its Revocation. kubectl
// keeps extensions that it doesn't know when it writes the file.
const Extension = "cellcast.io"

// maxKubeconfig is the most of a kubeconfig that Read takes, in bytes: a bundle
// of CAs is the largest thing in one of ours.
const maxKubeconfig = 1 << 20

// Revocation is what revoking a credential takes. None of it opens anything, but
// the nonce isn't to be printed: callers that share a subject, as all pull
// requests of a repository can, are told apart by it alone.
type Revocation struct {
	Cell            string `json:"cell"`
	Namespace       string `json:"namespace"`
	RevocationNonce string `json:"revocationNonce"`
	// RevokesAt is when the credential ends by itself.
	RevokesAt metav1.Time `json:"revokesAt"`
	// Workload and RequestID say where it came from; they may be empty.
	Workload  string `json:"workload,omitempty"`
	RequestID string `json:"requestID,omitempty"`
}

// Revocable reports whether a credential can be ended before its time.
func Revocable(c cellcastv1alpha1.Credential) bool {
	return c.RevokesAt != nil && c.RevocationNonce != ""
}

// Check refuses what no hub could have answered.
func (r Revocation) Check() error {
	switch {
	case len(validation.IsDNS1123Subdomain(r.Cell)) > 0:
		return errors.New("the name of the cell is wrong")
	case len(validation.IsDNS1123Label(r.Namespace)) > 0:
		return errors.New("the namespace of the credential is wrong")
	}
	if refused := revocation.ParseNonce("revocationNonce", r.RevocationNonce); refused != nil {
		return fmt.Errorf("the revocation nonce %s", refused.Message)
	}
	return nil
}

// carry makes an extension of a Revocation.
func carry(cell cellcastv1alpha1.CellReference, credential cellcastv1alpha1.Credential, from Origin) (runtime.Object, error) {
	r := Revocation{
		Cell: cell.Name, Namespace: credential.Namespace,
		RevocationNonce: credential.RevocationNonce, RevokesAt: *credential.RevokesAt,
		Workload: from.Workload, RequestID: from.RequestID,
	}
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("in the hub's answer, %w", err)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("write what revoking the credential takes: %w", err)
	}
	return &runtime.Unknown{Raw: raw, ContentType: runtime.ContentTypeJSON}, nil
}

// ErrNotRevocable says that a kubeconfig carries no Revocation.
var ErrNotRevocable = errors.New("holds no credential of cellcast's that can be revoked: a policy makes one so (spec.credential.revocable), " +
	"and any other ends by itself")

// Read returns what the current context of a kubeconfig carries, or
// ErrNotRevocable. No error quotes anything of the file.
func Read(path string) (Revocation, error) {
	r, err := read(path)
	if err != nil {
		return Revocation{}, fmt.Errorf("%s %w", path, err)
	}
	return r, nil
}

func read(path string) (Revocation, error) {
	file, err := os.Open(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Revocation{}, errors.New("doesn't exist")
	case err != nil:
		return Revocation{}, fmt.Errorf("can't be opened: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	content, err := io.ReadAll(io.LimitReader(file, maxKubeconfig+1))
	switch {
	case err != nil:
		return Revocation{}, fmt.Errorf("can't be read: %w", err)
	case len(content) > maxKubeconfig:
		return Revocation{}, fmt.Errorf("is longer than %d bytes: it's no kubeconfig of cellcast's", maxKubeconfig)
	}
	return parse(content)
}

func parse(content []byte) (Revocation, error) {
	var config clientcmdapi.Config
	if yaml.UnmarshalStrict(content, &config) != nil || config.Kind != "Config" || config.APIVersion != "v1" {
		return Revocation{}, errors.New("is no kubeconfig") // a parser's error could quote the token
	}
	raw := carried(config)
	if raw == nil {
		return Revocation{}, ErrNotRevocable
	}
	var r Revocation
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return Revocation{}, errors.New("has an extension " + Extension + " that this version can't read: update cellcast")
	}
	if err := r.Check(); err != nil {
		return Revocation{}, fmt.Errorf("can't be used to revoke: %w", err)
	}
	if r.RevokesAt.IsZero() {
		return Revocation{}, errors.New("can't be used to revoke: the time at which the credential ends is missing")
	}
	return r, nil
}

// carried is the extension of the current context; nil where there is none.
func carried(config clientcmdapi.Config) []byte {
	for _, context := range config.Contexts {
		if context.Name != config.CurrentContext {
			continue
		}
		for _, extension := range context.Context.Extensions {
			if extension.Name == Extension {
				return extension.Extension.Raw
			}
		}
	}
	return nil
}
