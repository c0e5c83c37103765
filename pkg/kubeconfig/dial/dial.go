// Package dial connects the hub to brought targets, and to nothing that its
// address.Policy denies. The check stands after the resolution of the name, on the
// very address that is about to be connected to: there is no second resolution
// after it, so a name that changes between two answers gains nothing.
package dial

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"cellcast.io/cellcast/pkg/kubeconfig/address"
)

// timeout is how long all addresses of a name together may take.
const timeout = 10 * time.Second

// Control is for net.Dialer.Control: it's called for each address before the
// connection begins. Its error wraps an *address.DeniedError where one is denied.
func Control(permitted address.Policy) func(network, addr string, _ syscall.RawConn) error {
	return func(network, addr string, _ syscall.RawConn) error {
		if network != "tcp4" && network != "tcp6" {
			return fmt.Errorf("a target is reached by TCP alone, not by %s", network)
		}
		to, err := netip.ParseAddrPort(addr)
		if err != nil {
			return fmt.Errorf("read the address to connect to: %w", err)
		}
		return permitted.Check(to.Addr(), to.Port())
	}
}

// Context is for the DialContext of a transport, and for rest.Config.Dial. The
// transport must use no proxy: a proxy would connect where it likes.
func Context(permitted address.Policy) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return with(&net.Dialer{Timeout: timeout, Control: Control(permitted)})
}

func with(dialer *net.Dialer) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		rooted, err := root(addr)
		if err != nil {
			return nil, err
		}
		return dialer.DialContext(ctx, network, rooted)
	}
}

// root makes a name absolute. Else a pod's list of search domains would make of
// api.acme a name in the hub's own cluster.
func root(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("read the address to connect to: %w", err)
	}
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" || strings.HasSuffix(host, ".") {
		return addr, nil // localhost stands in /etc/hosts, without a dot
	}
	return net.JoinHostPort(host+".", port), nil
}
