package world

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"time"
)

// connect makes the link between this machine and the enclave, with the bridge at
// its other end. Nothing is forwarded: pods reach each other, and this machine at its
// address on the link.
func (e *enclave) connect(ctx context.Context) error {
	unlock, err := lockNetwork(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if e.subnet, err = freeSubnet(); err != nil {
		return err
	}
	e.address = e.subnet.Addr().Next()
	e.bridge = e.address.Next()
	here := fmt.Sprintf(`link add %[1]s type veth peer name uplink netns %[2]d
address add %[3]s/%[4]d dev %[1]s
link set %[1]s up
`, e.id(), e.first.PID(), e.address, e.subnet.Bits())
	if err := execute(ctx, strings.NewReader(here), "ip", "-batch", "-"); err != nil {
		return err
	}
	there := fmt.Sprintf(`link set lo up
link add %[1]s type bridge
link set uplink master %[1]s up
address add %[2]s/%[3]d dev %[1]s
link set %[1]s up
`, bridgeName, e.bridge, e.subnet.Bits())
	return e.run(ctx, strings.NewReader(there), "ip", "-batch", "-")
}

// lockNetwork keeps other worlds on this machine from taking a subnet at the same
// time. The lock is a name of a socket, which the kernel frees when we die.
func lockNetwork(ctx context.Context) (unlock func(), err error) {
	for {
		lock, err := net.Listen("unix", "@cellcast-world-network")
		if err == nil {
			return func() { _ = lock.Close() }, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another world to choose its subnet: %w", errors.Join(ctx.Err(), err))
		case <-time.After(readyEvery):
		}
	}
}

// freeSubnet returns a part of PodRange that no address of this machine is in.
func freeSubnet() (netip.Prefix, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("reading this machine's addresses: %w", err)
	}
	for _, n := range rand.Perm(256) {
		subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 201, byte(n), 0}), 24)
		if !taken(subnet, addresses) {
			return subnet, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("no subnet of %s is free", PodRange)
}

func taken(subnet netip.Prefix, addresses []net.Addr) bool {
	for _, address := range addresses {
		other, err := netip.ParsePrefix(address.String())
		if err == nil && other.Overlaps(subnet) {
			return true
		}
	}
	return false
}
