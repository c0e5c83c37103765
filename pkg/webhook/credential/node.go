package credential

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// node is a JSON or YAML value. Unlike a Go map it keeps every member of an
// object: of two with one key, a decoder would hide the first.
type node struct {
	kind nodeKind
	// text is the value of a scalar.
	text string
	// keys name the children of a mapping, one for one.
	keys     []string
	children []node
}

type nodeKind int

const (
	// empty is null, a boolean or an alias: nothing that could hold a secret.
	empty nodeKind = iota
	scalar
	sequence
	mapping
)

var errTooDeep = errors.New("nests too deep")

// parseJSON returns the JSON values that make up the text.
func parseJSON(text string) ([]node, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var documents []node
	for {
		n, err := decode(d, 0)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return documents, err
		}
		documents = append(documents, n)
	}
}

func decode(d *json.Decoder, depth int) (node, error) {
	if depth > MaxDepth {
		return node{}, errTooDeep
	}
	token, err := d.Token()
	if err != nil {
		return node{}, err
	}
	switch token := token.(type) {
	case json.Delim:
		return decodeChildren(d, token, depth)
	case string:
		return node{kind: scalar, text: token}, nil
	case json.Number:
		return node{kind: scalar, text: token.String()}, nil
	default:
		return node{}, nil
	}
}

func decodeChildren(d *json.Decoder, open json.Delim, depth int) (node, error) {
	n := node{kind: sequence}
	if open == '{' {
		n.kind = mapping
	}
	for d.More() {
		if n.kind == mapping {
			key, err := d.Token()
			if err != nil {
				return node{}, err
			}
			n.keys = append(n.keys, key.(string)) // the decoder admits no other key
		}
		child, err := decode(d, depth+1)
		if err != nil {
			return node{}, noEOF(err)
		}
		n.children = append(n.children, child)
	}
	_, err := d.Token()
	return n, noEOF(err)
}

// noEOF keeps the end of the text inside a value apart from that after one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parseYAML returns the YAML documents that make up the text; with an error,
// those before it.
func parseYAML(text string) ([]node, error) {
	d := yaml.NewDecoder(strings.NewReader(text))
	var documents []node
	for {
		var y yaml.Node
		err := d.Decode(&y)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return documents, err
		}
		n, err := fromYAML(&y, 0)
		if err != nil {
			return documents, err
		}
		documents = append(documents, n)
	}
}

// fromYAML never follows an alias to a mapping or sequence, so that a document
// of aliases can't grow: what it stands for is searched at its anchor.
func fromYAML(y *yaml.Node, depth int) (node, error) {
	if depth > MaxDepth {
		return node{}, errTooDeep
	}
	if y.Kind == yaml.AliasNode && y.Alias != nil && y.Alias.Kind == yaml.ScalarNode {
		y = y.Alias
	}
	n := node{}
	switch y.Kind {
	case yaml.DocumentNode:
		if len(y.Content) == 0 {
			return n, nil
		}
		return fromYAML(y.Content[0], depth)
	case yaml.ScalarNode:
		if tag := y.ShortTag(); tag != "!!null" && tag != "!!bool" {
			n = node{kind: scalar, text: y.Value}
		}
		return n, nil
	case yaml.SequenceNode:
		n.kind = sequence
	case yaml.MappingNode:
		n.kind = mapping
	default:
		return n, nil
	}
	for i, content := range y.Content {
		if n.kind == mapping && i%2 == 0 {
			n.keys = append(n.keys, content.Value)
			continue
		}
		child, err := fromYAML(content, depth+1)
		if err != nil {
			return node{}, err
		}
		n.children = append(n.children, child)
	}
	return n, nil
}
