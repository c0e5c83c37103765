package credential

import (
	"errors"
	"slices"
	"strings"
)

var errNoDocument = errors.New("plain text")

// parseDocuments returns the JSON or YAML documents that a string holds. The
// error says that it holds more than those, or none.
func parseDocuments(text string) ([]node, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return nil, errNoDocument
	}
	if strings.ContainsRune(`{["`, rune(trimmed[0])) {
		documents, err := parseJSON(trimmed)
		if err == nil || errors.Is(err, errTooDeep) {
			return documents, err
		}
	}
	if !strings.Contains(trimmed, ":") && !strings.Contains(trimmed, "- ") {
		return nil, errNoDocument
	}
	documents, err := parseYAML(text)
	documents = slices.DeleteFunc(documents, func(n node) bool {
		return n.kind != mapping && n.kind != sequence || isProse(trimmed, n)
	})
	if len(documents) == 0 && err == nil {
		err = errNoDocument
	}
	return documents, err
}

// isProse says that what parsed as YAML is a line with a colon in it, such as
// "token: ask the platform team".
func isProse(text string, n node) bool {
	if strings.Contains(text, "\n") || text[0] == '{' || n.kind != mapping || len(n.children) != 1 {
		return false
	}
	isName := strings.Trim(n.keys[0], letters+digits+"_-./") == ""
	return !isName || n.children[0].kind == scalar && strings.Contains(n.children[0].text, " ")
}

// documentForm recognises documents that are a credential as a whole.
func documentForm(n node) (Form, bool) {
	has := func(key string, kinds ...nodeKind) bool {
		for i, k := range n.keys {
			if k == key && slices.Contains(kinds, n.children[i].kind) {
				return true
			}
		}
		return false
	}
	is := func(key, value string) bool {
		for i, k := range n.keys {
			if k == key && n.children[i].kind == scalar && n.children[i].text == value {
				return true
			}
		}
		return false
	}
	switch {
	case is("kind", "Config") && (has("clusters", sequence) || has("users", sequence) || has("contexts", sequence)),
		has("users", sequence) && has("clusters", sequence):
		return Kubeconfig, true
	case is("kind", "Secret") && (has("data", mapping) || has("stringData", mapping)):
		return KubernetesSecret, true
	case has("kty", scalar) && (has("d", scalar) || has("k", scalar)):
		return PrivateKey, true
	default:
		return "", false
	}
}
