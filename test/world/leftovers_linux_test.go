package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestSweepRemovesWhatTheDeadLeftAndNothingElse(t *testing.T) {
	if err := HaveNode(); err != nil {
		t.Skip(err)
	}
	dead, alive := enclavePrefix+"9999999", fmt.Sprintf("%s%d", enclavePrefix, os.Getpid())
	t.Cleanup(func() {
		_ = execute(context.Background(), nil, "ip", "link", "delete", dead)
		_ = execute(context.Background(), nil, "ip", "link", "delete", alive)
	})
	if err := execute(t.Context(), nil, "ip", "link", "add", dead, "type", "veth", "peer", "name", alive); err != nil {
		t.Fatal(err)
	}
	groups, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dead, alive} {
		if err := makeCgroups(name); err != nil {
			t.Fatal(err)
		}
		for _, group := range groups {
			inner := filepath.Join(group, name, "kubepods", "pod1")
			t.Cleanup(func() {
				for dir := inner; dir != group; dir = filepath.Dir(dir) {
					_ = os.Remove(dir)
				}
			})
			if err := os.MkdirAll(inner, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The two ends of a link go together, so the one of the living ends here.
	if err := sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := net.InterfaceByName(dead); err == nil {
		t.Errorf("the link %s is left", dead)
	}
	for _, group := range groups {
		if _, err := os.Stat(filepath.Join(group, dead)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left in %s", dead, group)
		}
		if _, err := os.Stat(filepath.Join(group, alive, "kubepods", "pod1")); err != nil {
			t.Errorf("the control group of the living: %v", err)
		}
	}
}

func TestAbandoned(t *testing.T) {
	for name, want := range map[string]bool{
		enclavePrefix + "9999999":                      true,
		fmt.Sprint(enclavePrefix, os.Getpid()):         false,
		enclavePrefix:                                  false,
		enclavePrefix + "-hub":                         false,
		"docker0":                                      false,
		"9999999":                                      false,
		fmt.Sprint("x", enclavePrefix, 9999999):        false,
		fmt.Sprint(enclavePrefix, os.Getpid(), "-old"): false,
	} {
		if got := abandoned(name); got != want {
			t.Errorf("%s is abandoned: %t, want %t", name, got, want)
		}
	}
}

func TestFreeSubnetIsNobodys(t *testing.T) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	subnet, err := freeSubnet()
	if err != nil {
		t.Fatal(err)
	}
	if taken(subnet, addresses) {
		t.Errorf("%s is an address's of this machine", subnet)
	}
	_, inside, err := net.ParseCIDR(subnet.String())
	if err != nil {
		t.Fatal(err)
	}
	if !taken(subnet, []net.Addr{&net.IPNet{IP: subnet.Addr().Next().AsSlice(), Mask: inside.Mask}}) {
		t.Errorf("%s doesn't count as taken by an address in it", subnet)
	}
}
