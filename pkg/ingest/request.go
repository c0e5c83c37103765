package ingest

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"cellcast.io/cellcast/pkg/keyset"
)

// route reads /api/pods/{pod}/artifacts/{kind}. A path that needs decoding is
// none.
func route(u *url.URL) (name string, kind Kind, ok bool) {
	rest, found := strings.CutPrefix(u.Path, "/api/pods/")
	name, rest, separated := strings.Cut(rest, "/artifacts/")
	kind = Kind(rest)
	if !found || !separated || u.RawPath != "" || kind.limit() == 0 {
		return "", "", false
	}
	if len(name) > validation.DNS1123SubdomainMaxLength || len(validation.IsDNS1123Subdomain(name)) != 0 {
		return "", "", false
	}
	return name, kind, true
}

// bearer returns the only credential of a request (RFC 6750 section 2.1), of at
// most as many bytes as a token has.
func bearer(header http.Header) (string, bool) {
	const scheme = "Bearer "
	values := header.Values("Authorization")
	if len(values) != 1 || len(values[0]) <= len(scheme) || !strings.EqualFold(values[0][:len(scheme)], scheme) {
		return "", false
	}
	token := values[0][len(scheme):]
	if len(token) > keyset.MaxToken || strings.ContainsAny(token, " \t,") {
		return "", false
	}
	return token, true
}

// source is whom an address counts for: itself, or the /64 of IPv6, which one
// host can have all of. Addresses that can't be read are one source.
func source(address string) netip.Prefix {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 64
	if addr.Is4() {
		bits = 32
	}
	return netip.PrefixFrom(addr, bits).Masked()
}
