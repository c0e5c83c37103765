// Package address says which addresses and ports the hub connects to for a target
// that somebody brought. A registrant chooses the address, so it could be one that
// only the hub can reach: its own loopback, a metadata service, a Service beside
// it. Private ranges are permitted, for brought clusters stand in them; the hub's
// own pod and service ranges are for its operator to deny.
//
// It decides on an address, never on a name: what a name stands for is known only
// where the connection is made (package dial).
package address

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Policy is what is permitted. The zero Policy denies what every hub denies, and
// permits the ports 443 and 6443.
type Policy struct {
	allowed, denied []netip.Prefix
	ports           []portRange
}

// Options is a Policy as an operator writes it.
type Options struct {
	// Allow has ranges, such as 127.0.0.0/8, that win over every denied one.
	Allow []string
	// Deny has ranges beside those that every hub denies: its pods and Services.
	Deny []string
	// Ports has ports, 443, and ranges of them, 30000-32767; empty for 443 and 6443.
	Ports []string
}

// New reads the Options.
func New(o Options) (Policy, error) {
	allowed, err := parseRanges(o.Allow)
	if err != nil {
		return Policy{}, fmt.Errorf("allowed addresses: %w", err)
	}
	denied, err := parseRanges(o.Deny)
	if err != nil {
		return Policy{}, fmt.Errorf("denied addresses: %w", err)
	}
	ports, err := parsePorts(o.Ports)
	if err != nil {
		return Policy{}, fmt.Errorf("permitted ports: %w", err)
	}
	return Policy{allowed, denied, ports}, nil
}

// DeniedError is why an address or a port is denied. It's for the operator's log: a
// registrant learns no more than that the target can't be reached.
type DeniedError struct {
	Addr   netip.Addr // invalid where the port is denied
	Port   uint16     // 0 where the address is
	Reason string     // such as loopback
}

func (e *DeniedError) Error() string {
	if e.Port != 0 {
		return fmt.Sprintf("port %d is denied: %s", e.Port, e.Reason)
	}
	return fmt.Sprintf("address %s is denied: %s", e.Addr, e.Reason)
}

// Check returns nil where the hub may connect to the address and port, else a
// *DeniedError.
func (p Policy) Check(addr netip.Addr, port uint16) error {
	if err := p.CheckAddr(addr); err != nil {
		return err
	}
	return p.CheckPort(port)
}

// CheckAddr is Check for an address whose port isn't known.
func (p Policy) CheckAddr(addr netip.Addr) error {
	if !addr.IsValid() || addr.Zone() != "" {
		return &DeniedError{Addr: addr, Reason: "not an address of every machine"}
	}
	for _, form := range forms(addr) {
		if contains(p.allowed, form) {
			continue
		}
		if contains(p.denied, form) {
			return &DeniedError{Addr: addr, Reason: "in a range that the operator denies"}
		}
		for _, always := range alwaysDenied() {
			if always.prefix.Contains(form) {
				return &DeniedError{Addr: addr, Reason: always.reason}
			}
		}
	}
	return nil
}

// CheckPort is Check for a port whose address isn't known.
func (p Policy) CheckPort(port uint16) error {
	ports := p.ports
	if len(ports) == 0 {
		ports = []portRange{{443, 443}, {6443, 6443}}
	}
	if port != 0 && slices.ContainsFunc(ports, func(r portRange) bool { return r.first <= port && port <= r.last }) {
		return nil
	}
	return &DeniedError{Port: port, Reason: "not among the permitted ports"}
}

func contains(ranges []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(addr) })
}

func parseRanges(texts []string) ([]netip.Prefix, error) {
	var ranges []netip.Prefix
	for _, text := range texts {
		r, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no range such as 10.0.0.0/8: %w", text, err)
		}
		switch {
		case r != r.Masked():
			return nil, fmt.Errorf("%q isn't the first address of its range: write %s", text, r.Masked())
		case r.Addr().Is4In6(): // it would contain nothing, for addresses are compared as IPv4
			return nil, fmt.Errorf("%q stands for a range of IPv4: write that one", text)
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

type portRange struct{ first, last uint16 }

func parsePorts(texts []string) ([]portRange, error) {
	var ports []portRange
	for _, text := range texts {
		firstText, lastText, isRange := strings.Cut(text, "-")
		if !isRange {
			lastText = firstText
		}
		first, err := strconv.ParseUint(firstText, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("%q is no port and no range of ports: %w", text, err)
		}
		last, err := strconv.ParseUint(lastText, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("%q is no port and no range of ports: %w", text, err)
		}
		if first == 0 || last < first {
			return nil, fmt.Errorf("%q: ports are from 1 to 65535, the first of a range before the last", text)
		}
		ports = append(ports, portRange{uint16(first), uint16(last)})
	}
	return ports, nil
}
