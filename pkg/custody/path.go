package custody

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// PathAllowed returns nil where a path in Vault is the owner's: below users/NAME/
// or groups/NAME/, with NAME escaped as one segment of a URL's path. The escaped
// name is what stands in Vault, letter by letter; so what follows it has no escape,
// and a name that another reader of escapes could take for somebody else's has no
// path at all. The error is for whoever wrote the path, and doesn't quote it.
func PathAllowed(owner registryv1alpha1.TargetOwner, path string) error {
	prefix, err := ownPrefix(owner)
	if err != nil {
		return err
	}
	rest, isOwn := strings.CutPrefix(path, prefix)
	if !isOwn {
		return fmt.Errorf("the path must begin with %s", prefix)
	}
	for segment := range strings.SplitSeq(rest, "/") {
		if segment == "" || strings.Trim(segment, ".") == "" || strings.ContainsFunc(segment, isForeign) {
			return fmt.Errorf("what follows %s must be letters, digits and ._~@:+=- between single slashes, no segment of dots alone", prefix)
		}
	}
	return nil
}

func ownPrefix(owner registryv1alpha1.TargetOwner) (string, error) {
	var kind, name string
	switch {
	case owner.User != "" && owner.Group == "":
		kind, name = "users/", owner.User
	case owner.Group != "" && owner.User == "":
		kind, name = "groups/", owner.Group
	default:
		return "", errors.New("the target has no owner, so no path is its owner's")
	}
	if isAmbiguous(name) {
		return "", errors.New("the owner's name has a %, a backslash, a control character or a segment of dots alone in it, so no path in Vault is surely its own: use a secretRef")
	}
	return kind + url.PathEscape(name) + "/", nil
}

// isAmbiguous reports whether a name could be another's once its escapes are read
// twice, or its path is cleaned.
func isAmbiguous(name string) bool {
	for segment := range strings.SplitSeq(name, "/") {
		if segment != "" && strings.Trim(segment, ".") == "" {
			return true
		}
	}
	return strings.ContainsFunc(name, func(c rune) bool {
		return c == '%' || c == '\\' || unicode.IsControl(c)
	})
}

// isForeign reports whether a character may not stand below the owner's prefix.
func isForeign(c rune) bool {
	letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	return !letter && !strings.ContainsRune("._~@:+=-", c)
}
