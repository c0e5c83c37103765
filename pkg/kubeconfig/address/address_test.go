package address

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func policy(t *testing.T, o Options) Policy {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheZeroPolicyDenies(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1":                    loopback,
		"127.255.255.254":              loopback,
		"0.0.0.0":                      unspecified,
		"0.1.2.3":                      unspecified,
		"169.254.169.254":              linkLocal,
		"169.254.170.23":               linkLocal,
		"224.0.0.1":                    multicast,
		"239.255.255.255":              multicast,
		"240.0.0.1":                    reserved,
		"255.255.255.255":              reserved,
		"192.0.0.192":                  reserved,
		"100.100.100.200":              metadata,
		"168.63.129.16":                metadata,
		"::":                           unspecified,
		"::1":                          loopback,
		"fe80::1":                      linkLocal,
		"febf::1":                      linkLocal,
		"fec0::1":                      linkLocal,
		"ff02::1":                      multicast,
		"fd00:ec2::254":                metadata,
		"fd20:ce::254":                 metadata,
		"::ffff:127.0.0.1":             loopback,
		"::ffff:169.254.169.254":       linkLocal,
		"64:ff9b::127.0.0.1":           loopback,
		"64:ff9b::a9fe:a9fe":           linkLocal,
		"64:ff9b::100.100.100.200":     metadata,
		"64:ff9b:1::a00:1":             embedding,
		"2002:7f00:1::":                embedding,
		"2002:808:808::1":              embedding,
		"2001:0:7f00:1::1":             embedding,
		"::127.0.0.1":                  embedding,
		"::8.8.8.8":                    embedding,
		"::ffff:0:127.0.0.1":           embedding,
		"2001:db8::5efe:127.0.0.1":     loopback,
		"2001:db8::200:5efe:a9fe:a9fe": linkLocal,
		"fe80::1%eth0":                 "not an address of every machine",
		"2001:db8::1%eth0":             "not an address of every machine",
	} {
		err := Policy{}.Check(netip.MustParseAddr(addr), 6443)
		var denied *DeniedError
		if !errors.As(err, &denied) || denied.Reason != want || denied.Port != 0 {
			t.Errorf("%s: got %v, want %s", addr, err, want)
		}
	}
	if err := (Policy{}).Check(netip.Addr{}, 6443); err == nil {
		t.Error("no address at all is permitted")
	}
}

func TestTheZeroPolicyPermits(t *testing.T) {
	for _, addr := range []string{
		"8.8.8.8", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "126.255.255.255", "128.0.0.1", "169.253.255.255", "223.255.255.255",
		"2001:db8::1", "fc00::1", "fd12:3456::1", "2003::1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::8.8.8.8", "2001:db8::5efe:10.0.0.1", "2001:db8::5eff:7f00:1",
	} {
		if err := (Policy{}).Check(netip.MustParseAddr(addr), 443); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestTheOperatorDeniesAndAllows(t *testing.T) {
	p := policy(t, Options{Allow: []string{"127.0.0.0/8", "10.1.2.3/32"}, Deny: []string{"10.0.0.0/8", "fd12::/16"}})
	for addr, want := range map[string]string{
		"127.0.0.1":          "",
		"::ffff:127.0.0.1":   "",
		"64:ff9b::127.0.0.1": "",
		"::1":                loopback,
		"169.254.169.254":    linkLocal,
		"10.0.0.1":           "in a range that the operator denies",
		"::ffff:10.0.0.1":    "in a range that the operator denies",
		"64:ff9b::10.0.0.1":  "in a range that the operator denies",
		"fd12::1":            "in a range that the operator denies",
		"10.1.2.3":           "",
		"192.168.0.1":        "",
	} {
		err := p.CheckAddr(netip.MustParseAddr(addr))
		var denied *DeniedError
		if errors.As(err, &denied); want == "" && err != nil || want != "" && (denied == nil || denied.Reason != want) {
			t.Errorf("%s: got %v, want %q", addr, err, want)
		}
	}
}

// To allow a translation's range is to allow the translation, not all that it leads to.
func TestAnAllowedTranslationIsStillLookedInto(t *testing.T) {
	p := policy(t, Options{Allow: []string{"64:ff9b::/96"}})
	if err := p.CheckAddr(netip.MustParseAddr("64:ff9b::127.0.0.1")); err == nil {
		t.Error("loopback is permitted by NAT64")
	}
}

func TestPorts(t *testing.T) {
	some := policy(t, Options{Ports: []string{"8443", "30000-30002"}})
	for _, tt := range []struct {
		policy    Policy
		port      uint16
		permitted bool
	}{
		{Policy{}, 443, true}, {Policy{}, 6443, true}, {Policy{}, 22, false}, {Policy{}, 0, false}, {Policy{}, 2379, false},
		{some, 8443, true}, {some, 443, false}, {some, 29999, false}, {some, 30000, true}, {some, 30002, true}, {some, 30003, false},
	} {
		err := tt.policy.Check(netip.MustParseAddr("192.168.0.1"), tt.port)
		if (err == nil) != tt.permitted {
			t.Errorf("port %d: %v", tt.port, err)
		}
	}
	const want = "port 22 is denied: not among the permitted ports"
	if err := (Policy{}).CheckPort(22); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestNewRefusesOptionsThatHoldNothing(t *testing.T) {
	for text, o := range map[string]Options{
		"allowed addresses":      {Allow: []string{"10.0.0.1"}},
		"denied addresses":       {Deny: []string{"acme"}},
		"write 10.0.0.0/8":       {Deny: []string{"10.1.0.0/8"}},
		"a range of IPv4":        {Deny: []string{"::ffff:10.0.0.0/104"}},
		"no port":                {Ports: []string{"https"}},
		"65535":                  {Ports: []string{"443-80"}},
		"from 1":                 {Ports: []string{"0"}},
		"no range of ports":      {Ports: []string{"443-"}},
		`"70000" is no port and`: {Ports: []string{"70000"}},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: got %v", o, err)
		}
	}
}
