package kubeconfig

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"cellcast.io/cellcast/pkg/kubeconfig/address"
)

const (
	scheme      = "https://"
	defaultPort = 443
	maxHost     = 253 // of a name, in bytes (RFC 1035, section 2.3.4)
	maxPath     = 256
)

// parseServer reads a URL by a grammar of its own, far narrower than RFC 3986:
//
//	https://HOST[:PORT][/SEGMENT...][/]
//
// It returns a Kubeconfig with Server, Host and Port.
func parseServer(text string) (Kubeconfig, *Error) {
	rest, ok := strings.CutPrefix(text, scheme)
	switch {
	case !ok:
		return Kubeconfig{}, refuseAsIs(ServerScheme)
	case strings.Contains(rest, "@"):
		return Kubeconfig{}, refuseAsIs(ServerUserinfo)
	case strings.ContainsAny(rest, "?#"):
		return Kubeconfig{}, refuseAsIs(ServerQuery)
	}
	authority, path, _ := strings.Cut(rest, "/")
	path, refused := parsePath(path)
	if refused != nil {
		return Kubeconfig{}, refused
	}
	host, port, refused := parseAuthority(authority)
	if refused != nil {
		return Kubeconfig{}, refused
	}
	server := scheme + host
	if strings.Contains(host, ":") {
		server = scheme + "[" + host + "]"
	}
	if port != defaultPort {
		server += ":" + strconv.Itoa(int(port))
	}
	return Kubeconfig{Server: server + path, Host: host, Port: port}, nil
}

// segment keeps to the unreserved characters of RFC 3986, section 2.3: nobody
// on the way has to decode one.
var segment = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)

// parsePath takes what stands after the first slash, and returns it with the slash
// before it and without one at its end.
func parsePath(text string) (string, *Error) {
	text = strings.TrimSuffix(text, "/")
	if text == "" {
		return "", nil
	}
	if len(text) > maxPath {
		return "", refuse(ServerPath, "the server's path is longer than %d characters", maxPath)
	}
	for part := range strings.SplitSeq(text, "/") {
		if part == "." || part == ".." || !segment.MatchString(part) {
			return "", refuseAsIs(ServerPath)
		}
	}
	return "/" + text, nil
}

func parseAuthority(text string) (host string, port uint16, refused *Error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Is6() {
		return "", 0, refuse(ServerHost, "the IPv6 address has no brackets around it")
	}
	host, portText, hasPort := strings.Cut(text, ":")
	parse := parseName
	if inner, ok := strings.CutPrefix(text, "["); ok {
		var after string
		if host, after, ok = strings.Cut(inner, "]"); !ok {
			return "", 0, refuse(ServerHost, "the bracket of the server's address isn't closed")
		}
		if portText, hasPort = strings.CutPrefix(after, ":"); !hasPort && after != "" {
			return "", 0, refuse(ServerHost, "something follows the bracket of the server's address")
		}
		parse = parseIPv6
	}
	if host, refused = parse(host); refused != nil {
		return "", 0, refused
	}
	port = defaultPort
	if hasPort {
		port, refused = parsePort(portText)
	}
	return host, port, refused
}

// parseIPv6 takes what stands between brackets.
func parseIPv6(text string) (string, *Error) {
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil || !addr.Is6():
		return "", refuse(ServerHost, "the brackets hold no IPv6 address")
	case addr.Zone() != "":
		return "", refuse(ServerHost, "the IPv6 address has a zone, which is of one machine alone")
	case addr.Is4In6():
		return "", refuse(ServerHost, "the IPv6 address stands for an IPv4 address: write that one")
	}
	return addr.String(), nil
}

// label is a part of a name between dots (RFC 1123, section 2.1).
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// numeric is a last label by which some readers take the whole for an IPv4 address:
// https://url.spec.whatwg.org/#ends-in-a-number-checker.
var numeric = regexp.MustCompile(`^(0x[0-9a-f]*|[0-9]+)$`)

// parseName takes a name, or an IPv4 address in four decimal parts.
func parseName(text string) (string, *Error) {
	host := strings.ToLower(text)
	if host == "" {
		return "", refuse(ServerHost, "the server has no host")
	}
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	switch {
	case last == "":
		return "", refuse(ServerHost, "the server's host ends with a dot, and its certificate's names don't")
	case numeric.MatchString(last):
		// netip takes four decimal numbers without leading zeros and nothing else.
		addr, err := netip.ParseAddr(host)
		if err != nil {
			return "", refuse(ServerHost, "the server's host isn't an IPv4 address of four decimal numbers")
		}
		return addr.String(), nil
	case host == "localhost":
		return host, nil
	case len(labels) == 1:
		return "", refuse(ServerHost, "the server's host is one word, which means something else on each machine")
	case len(host) > maxHost:
		return "", refuse(ServerHost, "the server's host is longer than %d characters", maxHost)
	}
	for _, l := range labels {
		if !label.MatchString(l) {
			return "", refuseAsIs(ServerHost)
		}
	}
	return host, nil
}

var decimal = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)

func parsePort(text string) (uint16, *Error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || !decimal.MatchString(text) {
		return 0, refuseAsIs(ServerPort)
	}
	return uint16(port), nil
}

// checkAddress refuses the address that is written there. A name passes, but for
// localhost and what is below it: they stand for loopback (RFC 6761, section 6.3).
func checkAddress(k Kubeconfig, permitted address.Policy) *Error {
	if permitted.CheckPort(k.Port) != nil {
		return refuseAsIs(PortDenied)
	}
	var addrs []netip.Addr
	if addr, err := netip.ParseAddr(k.Host); err == nil {
		addrs = append(addrs, addr)
	} else if k.Host == "localhost" || strings.HasSuffix(k.Host, ".localhost") {
		addrs = append(addrs, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	for _, addr := range addrs {
		if permitted.CheckAddr(addr) != nil {
			return refuseAsIs(AddressDenied)
		}
	}
	return nil
}
