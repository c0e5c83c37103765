package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/kubeconfigfile"
)

// The most that is read of an answer and of a nonce, in bytes.
const (
	maxAnswer = 4 << 20
	maxNonce  = 1 << 10
)

// which is the credential that the user named.
func (o *revokeOptions) which() (kubeconfigfile.Revocation, error) {
	switch {
	case o.kubeconfig != "":
		return kubeconfigfile.Read(o.kubeconfig)
	case o.answer != "":
		content, err := readInput(o.answer, maxAnswer)
		if err != nil {
			return kubeconfigfile.Revocation{}, err
		}
		return inAnswer(content)
	default:
		content, err := readInput(o.nonceFile, maxNonce)
		if err != nil {
			return kubeconfigfile.Revocation{}, err
		}
		named := kubeconfigfile.Revocation{Cell: o.cell, Namespace: o.namespace, RevocationNonce: strings.TrimSpace(string(content))}
		if err := named.Check(); err != nil {
			return named, &usageError{err.Error()}
		}
		return named, nil
	}
}

// readInput reads a file, or the standard input for -.
func readInput(path string, most int64) ([]byte, error) {
	var from io.Reader = os.Stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err // it names the file
		}
		defer func() { _ = file.Close() }() // it was only read
		from = file
	}
	content, err := io.ReadAll(io.LimitReader(from, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	case int64(len(content)) > most:
		return nil, fmt.Errorf("%s is longer than %d bytes: it's not what is expected there", path, most)
	}
	return content, nil
}

// inAnswer finds the credential in an answer, as JSON or YAML. Its errors quote
// nothing, for there is a token in it.
func inAnswer(content []byte) (kubeconfigfile.Revocation, error) {
	var none kubeconfigfile.Revocation
	var kind metav1.TypeMeta
	if yaml.Unmarshal(content, &kind) != nil || kind.APIVersion != cellcastv1alpha1.SchemeGroupVersion.String() {
		return none, errors.New("that is no answer of the hub's: expected is what place -o json printed")
	}
	var placement cellcastv1alpha1.Placement
	var token cellcastv1alpha1.CellToken
	var err error
	switch kind.Kind {
	case "Placement":
		err = yaml.UnmarshalStrict(content, &placement)
	case "CellToken":
		err = yaml.UnmarshalStrict(content, &token)
		placement.Status.Cell, placement.Status.Credential = token.Status.Cell, token.Status.Credential
	default:
		err = errors.New("neither a Placement nor a CellToken")
	}
	if err != nil {
		return none, errors.New("that is no Placement or CellToken that this version can read: expected is what place -o json printed")
	}
	credential := placement.Status.Credential
	if credential == nil || !kubeconfigfile.Revocable(*credential) {
		return none, fmt.Errorf("that answer %w", kubeconfigfile.ErrNotRevocable)
	}
	found := kubeconfigfile.Revocation{Cell: placement.Status.Cell.Name, Namespace: credential.Namespace,
		RevocationNonce: credential.RevocationNonce, RevokesAt: *credential.RevokesAt}
	if err := found.Check(); err != nil {
		return none, fmt.Errorf("that answer can't be used to revoke: %w", err)
	}
	return found, nil
}
