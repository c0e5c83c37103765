package address

import "net/netip"

// alwaysDeniedRange is a range that no cluster is reached in from another network.
type alwaysDeniedRange struct {
	prefix netip.Prefix
	reason string
}

// The reasons.
const (
	unspecified = "unspecified"
	loopback    = "loopback"
	linkLocal   = "link-local"
	multicast   = "multicast"
	reserved    = "reserved"
	metadata    = "a cloud's metadata service"
	embedding   = "an IPv4 address in a form of IPv6 that nobody serves in"
)

// alwaysDenied is after the special-purpose registries (RFC 6890) and what clouds
// document of their metadata services.
func alwaysDenied() []alwaysDeniedRange {
	r := func(prefix, reason string) alwaysDeniedRange {
		return alwaysDeniedRange{netip.MustParsePrefix(prefix), reason}
	}
	return []alwaysDeniedRange{
		r("0.0.0.0/8", unspecified), // Linux takes 0.0.0.0 for loopback
		r("127.0.0.0/8", loopback),
		r("169.254.0.0/16", linkLocal), // with the metadata services of most clouds
		r("192.0.0.0/24", reserved),    // with 192.0.0.192, Oracle's metadata service
		r("100.100.100.200/32", metadata),
		r("168.63.129.16/32", metadata),
		r("224.0.0.0/4", multicast),
		r("240.0.0.0/4", reserved), // with the broadcast address

		r("fd00:ec2::/32", metadata),
		r("fd20:ce::254/128", metadata),
		r("fe80::/10", linkLocal),
		r("fec0::/10", linkLocal), // site-local, until RFC 3879
		r("ff00::/8", multicast),
		r("::/128", unspecified),
		r("::1/128", loopback),
		r("::/96", embedding),           // IPv4-compatible (RFC 4291, section 2.5.5.1)
		r("::ffff:0:0:0/96", embedding), // IPv4-translated (RFC 2765)
		r("64:ff9b:1::/48", embedding),  // NAT64 of the local network alone (RFC 8215)
		r("2001::/32", embedding),       // Teredo (RFC 4380)
		r("2002::/16", embedding),       // 6to4 (RFC 3056)
	}
}

// forms are the addresses that a connection to this one could reach: itself, and
// the IPv4 address in it where something on the way would take it out.
func forms(addr netip.Addr) []netip.Addr {
	if addr.Is4In6() {
		addr = addr.Unmap()
	}
	if addr.Is4() {
		return []netip.Addr{addr}
	}
	b := addr.As16()
	nat64 := netip.MustParsePrefix("64:ff9b::/96").Contains(addr) // RFC 6052, section 2.1
	// The interface identifiers of ISATAP (RFC 5214, section 6.1).
	isatap := (b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
	if nat64 || isatap {
		return []netip.Addr{addr, netip.AddrFrom4([4]byte(b[12:16]))}
	}
	return []netip.Addr{addr}
}
