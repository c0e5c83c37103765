package cluster

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// endpoint checks where the hub will send its tokens. Two rows for one
// endpoint are unwise: it would be scored twice.
func endpoint(raw string, others []*registry.Cluster, path *field.Path) (field.ErrorList, []string) {
	u, errs := bareHTTPS(raw, path)
	if len(errs) > 0 {
		return errs, nil
	}
	var warnings []string
	for _, other := range others {
		if o, wrong := bareHTTPS(other.Spec.Endpoint, path); len(wrong) == 0 && sameServer(u, o) {
			warnings = append(warnings, fmt.Sprintf("%s is also the endpoint of the Cluster %q: one cell then counts as two", path, other.Name))
		}
	}
	return nil, warnings
}

// bareHTTPS parses an https URL that is nothing but a place: without userinfo,
// query or fragment. The errors of net/url quote the URL, so none is passed on.
func bareHTTPS(raw string, path *field.Path) (*url.URL, field.ErrorList) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return nil, field.ErrorList{invalid(path, "must be an https URL with a host, such as https://cell.example.com:6443")}
	}
	var errs field.ErrorList
	if u.User != nil {
		errs = append(errs, invalid(path, "must have no userinfo: the hub authenticates by its own short-lived tokens"))
	}
	if u.RawQuery != "" || u.ForceQuery {
		errs = append(errs, invalid(path, "must have no query"))
	}
	if strings.Contains(raw, "#") {
		errs = append(errs, invalid(path, "must have no fragment"))
	}
	return u, errs
}

func sameServer(a, b *url.URL) bool {
	return strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b) &&
		strings.Trim(a.Path, "/") == strings.Trim(b.Path, "/")
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return "443"
}
