package credential

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// search is one run over one object.
type search struct {
	tokens []token
	found  []Finding
	// work is how many bytes of text were looked at, in keys too.
	work *int
}

// place is where the search stands: the path, and the name of the last field,
// which says whether its members are fields or keys.
type place struct {
	path *field.Path
	name string
}

// maxKey is the longest key that a path quotes; a label's or an annotation's
// is no longer.
const maxKey = 317

func (p place) member(key string) place {
	shown := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, key[:min(len(key), maxKey)])
	switch {
	case p.path == nil:
		return place{field.NewPath(shown), key}
	case p.isMap() || !isIdentifier(shown):
		return place{p.path.Key(shown), key}
	default:
		return place{p.path.Child(shown), key}
	}
}

// isMap says that the members are entries of a map and not fields.
func (p place) isMap() bool {
	switch p.name {
	case "labels", "annotations", "matchLabels", "claims":
		return true
	default:
		return false
	}
}

func isIdentifier(key string) bool {
	return key != "" && strings.Trim(key, letters+digits+"_-") == ""
}

func (p place) element(i int) place { return place{p.path.Index(i), p.name} }

// add records a finding; the root itself, which has no path, is "object".
func (s *search) add(p place, form Form) {
	path := p.path
	if path == nil {
		path = field.NewPath("object")
	}
	found := Finding{path, form}
	if len(s.found) < MaxFindings && !slices.ContainsFunc(s.found, found.equal) {
		s.found = append(s.found, found)
	}
}

// value searches a value at its place; layer counts what was unwrapped so far.
func (s *search) value(p place, n node, layer int) {
	if len(s.found) == MaxFindings {
		return
	}
	switch n.kind {
	case mapping:
		if form, is := documentForm(n); is {
			s.add(p, form)
			return
		}
		s.members(p, n, layer)
	case sequence:
		for i, child := range n.children {
			s.value(p.element(i), child, layer)
		}
	case scalar:
		s.text(p, n.text, layer)
	case empty:
	}
}

func (s *search) members(p place, n node, layer int) {
	for i, key := range n.keys {
		child := n.children[i]
		switch form := s.inKey(key, layer); {
		case form != "":
			s.add(p, form)
		case namesCredential(key, child):
			s.add(p.member(key), Named)
		default:
			s.value(p.member(key), child, layer)
		}
	}
}

// inKey returns the form of what a key itself holds, or "".
func (s *search) inKey(key string, layer int) Form {
	inner := &search{tokens: s.tokens, work: s.work}
	inner.text(place{}, key, layer)
	if len(inner.found) == 0 {
		return ""
	}
	return inner.found[0].Form
}

// text searches a string: as a document, as it stands, and unwrapped from
// base64, until one of them has a finding.
func (s *search) text(p place, text string, layer int) {
	before := len(s.found)
	if *s.work += len(text); layer > MaxLayers || *s.work > MaxWork {
		s.add(p, Unsearchable)
		return
	}
	documents, err := parseDocuments(text)
	if errors.Is(err, errTooDeep) {
		s.add(p, Unsearchable)
		return
	}
	for _, document := range documents {
		s.value(p, document, layer+1)
	}
	if len(s.found) > before {
		return
	}
	form := s.material(text)
	if form == "" && err != nil && assigns(text) {
		form = Named
	}
	if form != "" {
		s.add(p, form)
		return
	}
	for decoded := range unwrapped(text) {
		if isKey(decoded) {
			s.add(p, PrivateKey)
			return
		}
		if isText(decoded) {
			s.text(p, string(decoded), layer+1)
		}
		if len(s.found) > before {
			return
		}
	}
}
