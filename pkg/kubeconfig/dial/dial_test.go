package dial

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cellcast.io/cellcast/pkg/kubeconfig/address"
)

// listen is a server on loopback that counts who came.
func listen(t *testing.T) (port string, came *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	came = &atomic.Int32{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			came.Add(1)
			conn.Close()
		}
	}()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), came
}

func policy(t *testing.T, o address.Options) address.Policy {
	t.Helper()
	p, err := address.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestADeniedAddressIsNotConnectedTo(t *testing.T) {
	port, came := listen(t)
	for sentence, tt := range map[string]struct {
		host    string
		options address.Options
	}{
		"an address":             {"127.0.0.1", address.Options{Ports: []string{port}}},
		"a name of loopback":     {"localhost", address.Options{Ports: []string{port}}},
		"a mapped address":       {"::ffff:127.0.0.1", address.Options{Ports: []string{port}}},
		"a port that's not said": {"127.0.0.1", address.Options{Allow: []string{"127.0.0.0/8"}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			conn, err := Context(policy(t, tt.options))(t.Context(), "tcp", net.JoinHostPort(tt.host, port))
			var denied *address.DeniedError
			if !errors.As(err, &denied) {
				t.Errorf("got %v, %v", conn, err)
			}
		})
	}
	if n := came.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestAnAllowedAddressIsConnectedTo(t *testing.T) {
	port, _ := listen(t)
	permitted := policy(t, address.Options{Allow: []string{"127.0.0.0/8"}, Ports: []string{port}})
	for _, host := range []string{"127.0.0.1", "localhost"} {
		conn, err := Context(permitted)(t.Context(), "tcp4", net.JoinHostPort(host, port))
		if err != nil {
			t.Fatalf("%s: %v", host, err)
		}
		conn.Close()
	}
}

func TestANameIsJudgedByEachAnswer(t *testing.T) {
	port, came := listen(t)
	// It answers with one that is permitted first, and with loopback ever after.
	names := &nameserver{answers: [][4]byte{{192, 0, 2, 1}, {127, 0, 0, 1}}}
	permitted := policy(t, address.Options{Ports: []string{port}})
	dialer := &net.Dialer{Timeout: timeout, Control: Control(permitted), Resolver: names.resolver()}

	if addrs, err := dialer.Resolver.LookupHost(t.Context(), "api.acme.example."); err != nil || addrs[0] != "192.0.2.1" {
		t.Fatalf("the check before: %v, %v", addrs, err)
	}
	conn, err := with(dialer)(t.Context(), "tcp4", "api.acme.example:"+port)
	var denied *address.DeniedError
	if !errors.As(err, &denied) || denied.Addr.String() != "127.0.0.1" {
		t.Errorf("got %v, %v", conn, err)
	}
	if n := came.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestControlTakesTCPAlone(t *testing.T) {
	check := Control(policy(t, address.Options{}))
	for network, addr := range map[string]string{"udp4": "10.0.0.1:443", "unix": "/run/acme.sock", "tcp4": "acme.example:443"} {
		if err := check(network, addr, nil); err == nil {
			t.Errorf("%s %s is permitted", network, addr)
		}
	}
	if err := check("tcp4", "10.0.0.1:443", nil); err != nil {
		t.Error(err)
	}
	if err := check("tcp6", "[fe80::1%eth0]:443", nil); err == nil {
		t.Error("an address with a zone is permitted")
	}
}

func TestNamesAreResolvedAsTheyStand(t *testing.T) {
	for addr, want := range map[string]string{
		"api.acme.example:443":  "api.acme.example.:443",
		"api.acme.example.:443": "api.acme.example.:443",
		"localhost:443":         "localhost:443",
		"10.0.0.1:443":          "10.0.0.1:443",
		"[2001:db8::1]:443":     "[2001:db8::1]:443",
	} {
		if got, err := root(addr); err != nil || got != want {
			t.Errorf("%s: got %s, %v", addr, got, err)
		}
	}
	if _, err := root("acme"); err == nil {
		t.Error("an address without a port is taken")
	}
}

// nameserver answers each question for an IPv4 address by the next of its answers,
// the last one ever after, and any other question by nothing.
type nameserver struct {
	answers [][4]byte
	asked   atomic.Int32
}

func (n *nameserver) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go n.serve(ours)
		return theirs, nil
	}}
}

// serve speaks DNS over a stream: the length in two bytes, then the message (RFC
// 1035, section 4).
func (n *nameserver) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(timeout))
	buf := make([]byte, 1024)
	size, err := conn.Read(buf)
	if err != nil || size < 14 {
		return
	}
	const headerSize = 12
	query := buf[2:size]
	end := headerSize + strings.IndexByte(string(query[headerSize:]), 0) + 5 // the name, its type and class
	isA := query[end-3] == 1
	reply := append([]byte(nil), query[:end]...)
	reply[2], reply[3] = 0x84, 0                              // an answer, with authority
	copy(reply[4:headerSize], []byte{0, 1, 0, 0, 0, 0, 0, 0}) // one question, no more
	if isA {
		reply[7] = 1
		i := min(int(n.asked.Add(1)), len(n.answers)) - 1
		reply = append(reply, 0xc0, headerSize, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, n.answers[i][:]...)
	}
	_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
}
