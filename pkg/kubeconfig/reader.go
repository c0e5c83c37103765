package kubeconfig

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reader walks the tree and gathers what it refuses, so that all of it can be told
// at once. A method that refused returns what is empty, and the walk goes on.
type reader struct {
	errs       []*Error
	serverLine int
}

// maxRefusals is how many are gathered of one mapping: a file of 64 KiB could have
// ten thousand, and nobody reads them.
const maxRefusals = 64

func (r *reader) refuse(e *Error) { r.errs = append(r.errs, e) }

// fields is what can stand in a mapping: the empty rule takes the field, another is
// the one by which it's refused.
type fields map[string]Rule

// mapping returns the fields that are taken, by name; nil where there is no mapping
// to speak of, and then nothing is said of what is missing in it.
func (r *reader) mapping(path string, n *yaml.Node, known fields) map[string]*yaml.Node {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.refuse(refuse(Type, "this must be a mapping").at(path, n.Line))
		return nil
	}
	taken, seen := map[string]*yaml.Node{}, map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if len(r.errs) >= maxRefusals {
			return nil
		}
		key, value := n.Content[i], n.Content[i+1]
		rule, ok := known[key.Value]
		field := join(path, key.Value)
		switch {
		case !ok: // a key that isn't text is no known one either
			r.refuse(refuseAsIs(UnknownField).at(path, key.Line))
		case isBlock(key):
			r.refuse(refuseAsIs(Block).at(path, key.Line))
		case seen[key.Value]:
			r.refuse(refuseAsIs(DuplicateField).at(field, key.Line))
		case rule != "":
			r.refuse(refuseAsIs(rule).at(field, key.Line))
		default:
			taken[key.Value] = value
		}
		seen[key.Value] = true
	}
	return taken
}

// field is a field that must be there.
func (r *reader) field(path string, n *yaml.Node, taken map[string]*yaml.Node, name string) *yaml.Node {
	if taken == nil {
		return nil
	}
	value, ok := taken[name]
	if !ok {
		r.refuse(refuseAsIs(MissingField).at(join(path, name), n.Line))
	}
	return value
}

// secondary is a field whose absence needs no word of its own where something else
// in the mapping was refused: a user with exec, told to put a token in its place,
// need not hear that the token is missing.
func (r *reader) secondary(path string, n *yaml.Node, taken map[string]*yaml.Node, name string) *yaml.Node {
	below := func(e *Error) bool { return strings.HasPrefix(e.Field, path+".") }
	if _, ok := taken[name]; !ok && slices.ContainsFunc(r.errs, below) {
		return nil
	}
	return r.field(path, n, taken, name)
}

// one returns the only item of a list, which another number of items breaks the
// rule.
func (r *reader) one(path string, n *yaml.Node, rule Rule) *yaml.Node {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.refuse(refuse(Type, "this must be a list").at(path, n.Line))
		return nil
	}
	if len(n.Content) == 0 {
		r.refuse(refuseAsIs(rule).at(path, n.Line))
		return nil
	}
	if len(n.Content) > 1 {
		r.refuse(refuseAsIs(rule).at(path+"[1]", n.Content[1].Line))
	}
	return n.Content[0]
}

// text returns the text of a field that must not be empty.
func (r *reader) text(path string, n *yaml.Node) string {
	switch {
	case n == nil:
		return ""
	case n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Style == 0 && isOldBool(n.Value):
		r.refuse(refuse(Type, "this must be text").at(path, n.Line))
		return ""
	case isBlock(n):
		r.refuse(refuseAsIs(Block).at(path, n.Line))
		return ""
	case n.Value == "":
		r.refuse(refuseAsIs(EmptyValue).at(path, n.Line))
		return ""
	}
	return n.Value
}

func isBlock(n *yaml.Node) bool { return n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 }

// isOldBool reports whether YAML 1.1, which kubectl reads, takes the word for true
// or false where 1.2 doesn't.
func isOldBool(word string) bool {
	switch word {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON",
		"n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return true
	}
	return false
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func item(path string, index int) string { return path + "[" + strconv.Itoa(index) + "]" }
