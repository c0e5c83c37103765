// Package credential finds credential material in a JSON object, wherever it
// hides: in a field, a label, an annotation, a key, a document inside a string,
// base64 around any of them. It says where and what kind, and never the value.
//
// It guards against the mistakes that people make (a kubeconfig pasted into an
// annotation, a token in a field that the CRD pruned but that kubectl apply
// kept) and against the ordinary ways to hide one. It can't find what is
// encrypted, split over fields, or encoded in a way that only the hider knows.
package credential

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits of a search. What exceeds one is refused, not skipped.
const (
	// MaxBytes is the largest object that is searched.
	MaxBytes = 1 << 20
	// MaxDepth is how deep objects and lists may nest, in the object itself and
	// in each document inside a string.
	MaxDepth = 64
	// MaxLayers is how often something may be wrapped in something: base64 in
	// base64, a document in a string of a document.
	MaxLayers = 8
	// MaxWork is how many bytes of text are looked at in all, what was unwrapped
	// counted again, so that no object can keep the hub busy.
	MaxWork = 4 * MaxBytes
	// MaxFindings ends a search: what has so many needs no more to be refused.
	MaxFindings = 16
)

// Form is what was found, as the object of a sentence: "holds a kubeconfig".
type Form string

// The forms that aren't one issuer's own; tokens.go has those.
const (
	JWT              Form = "a JSON Web Token"
	PrivateKey       Form = "a private key"
	Kubeconfig       Form = "a kubeconfig"
	KubernetesSecret Form = "the data of a Secret"         //nolint:gosec // G101: a name
	BootstrapToken   Form = "a Kubernetes bootstrap token" //nolint:gosec // G101: a name
	AWSKeyPair       Form = "an AWS access key with its secret"
	AuthHeader       Form = "the value of an Authorization header"
	URLPassword      Form = "a URL with a password" //nolint:gosec // G101: a name
	// Named is a value whose key or field says that it's a credential.
	Named Form = "a value under the name of a credential"
	// Unsearchable is what exceeds MaxDepth, MaxLayers or MaxWork.
	Unsearchable Form = "more layers or levels than can be searched"
)

// Finding is one place that holds credential material.
type Finding struct {
	// Path is the field, continued into documents inside strings. A key that is
	// itself credential material isn't part of it: the path ends at its parent.
	Path *field.Path
	// Form is what the field holds.
	Form Form
}

func (f Finding) equal(other Finding) bool {
	return f.Form == other.Form && f.Path.String() == other.Path.String()
}

// Scan returns the places of the object that hold credential material, in the
// order of the object, at most MaxFindings. The error is for an object that
// can't be searched at all; it quotes nothing of it.
func Scan(object []byte) ([]Finding, error) {
	if len(object) > MaxBytes {
		return nil, fmt.Errorf("the object has %d bytes; at most %d can be searched for credentials: shorten its annotations", len(object), MaxBytes)
	}
	documents, err := parseJSON(string(object))
	if err != nil || len(documents) != 1 || documents[0].kind != mapping {
		return nil, fmt.Errorf("the object can't be searched for credentials: it must be one JSON object that nests at most %d deep", MaxDepth)
	}
	s := &search{tokens: tokens(), work: new(int)}
	s.members(place{}, documents[0], 0)
	return withoutEchoes(s.found), nil
}

// withoutEchoes leaves out what metadata.managedFields only repeats: it names
// the keys that are found elsewhere. On its own it counts, for a client can
// write text into it.
func withoutEchoes(found []Finding) []Finding {
	isEcho := func(f Finding) bool { return strings.HasPrefix(f.Path.String(), "metadata.managedFields[") }
	if !slices.ContainsFunc(found, func(f Finding) bool { return !isEcho(f) }) {
		return found
	}
	return slices.DeleteFunc(found, isEcho)
}
