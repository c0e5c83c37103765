package targets

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/kubeconfig/address"
	"cellcast.io/cellcast/pkg/kubeconfig/dial"
	"cellcast.io/cellcast/pkg/probe"
	"cellcast.io/cellcast/pkg/secret"
)

// TestANameOfADeniedAddressIsNotConnectedTo: the defence is the dialer, which
// judges what a name stands for when it connects. A hub takes its resolver from
// the system, so this is the hub's client in the test's own process, with a
// resolver of the test's.
func TestANameOfADeniedAddressIsNotConnectedTo(t *testing.T) {
	a := newAuthority(t)
	v4, v6 := newWitness(t, "127.0.0.1:0"), newWitness(t, "[::1]:0")
	hubAPI := strings.TrimPrefix(hubURL(t), "https://")
	for sentence, tt := range map[string]struct {
		answer, port string
		deny         []string
		allow        []string
	}{
		"loopback":         {answer: "127.0.0.1", port: port(v4.address)},
		"loopback of IPv6": {answer: "::1", port: port(v6.address)},
		"loopback of IPv6 where that of IPv4 is allowed": {answer: "::1", port: port(v6.address), allow: []string{"127.0.0.0/8"}},
		"loopback as IPv6 has it":                        {answer: "::ffff:127.0.0.1", port: port(v4.address)},
		"the hub's own API server":                       {answer: "127.0.0.1", port: port(hubAPI)},
		"link-local":                                     {answer: "169.254.169.254", port: "6443"},
		"link-local as IPv6 has it":                      {answer: "::ffff:169.254.169.254", port: "6443"},
		"link-local of IPv6":                             {answer: "fe80::1", port: "6443"},
		"metadata through NAT64":                         {answer: "64:ff9b::a9fe:a9fe", port: "6443"},
		"a range that the operator denies":               {answer: "10.96.0.1", port: "443", deny: []string{"10.96.0.0/12"}},
		"unspecified":                                    {answer: "0.0.0.0", port: port(v4.address)},
	} {
		t.Run(sentence, func(t *testing.T) {
			resolve(t, netip.MustParseAddr(tt.answer))
			client := bringTo(t, a, "https://"+apiName+":"+tt.port, address.Options{Allow: tt.allow, Deny: tt.deny, Ports: []string{"443", "1024-65535"}})
			_, err := client.WhoAmI(t.Context())
			denied, ok := errors.AsType[*address.DeniedError](err)
			if !ok || denied.Addr.Unmap() != netip.MustParseAddr(tt.answer).Unmap() {
				t.Errorf("got %v", err)
			}
		})
	}
	v4.none(t, "what listens on loopback")
	v6.none(t, "what listens on loopback of IPv6")
	t.Run("and one that is permitted is", func(t *testing.T) { // else all of this would prove nothing
		resolve(t, netip.MustParseAddr("127.0.0.1"))
		client := bringTo(t, a, "https://"+apiName+":"+port(v4.address), address.Options{Allow: []string{"127.0.0.0/8"}, Ports: []string{"1024-65535"}})
		ctx, cancel := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		defer asking.Wait()
		defer cancel()
		asking.Go(func() { _, _ = client.WhoAmI(ctx) }) // it answers nothing
		within(t, 30*time.Second, "a connection is made", func(context.Context) error {
			if v4.came.Load() == 0 {
				return errors.New("nobody came")
			}
			return nil
		})
	})
}

// hubURL is where the hub's own API server is, or what stands for it where there
// is no fleet.
func hubURL(t *testing.T) string {
	t.Helper()
	if hub == nil {
		return "https://127.0.0.1:6443"
	}
	return hub.Hub.URL
}

// bringTo is the hub's client of a target.
func bringTo(t *testing.T, a *authority, server string, o address.Options) *cell.Client {
	t.Helper()
	clients := cell.NewClients(oneToken{}, cell.Options{Version: "test", Dial: dial.Context(must(address.New(o))(t))})
	k := must(kubeconfig.New(server, a.pem, secret.New("registered")))(t)
	return must(clients.Bring(cell.Brought{Address: "target:test", Endpoint: k.Server, CABundle: k.CAData}))(t)
}

// oneToken gives one token to whoever asks.
type oneToken struct{ token string }

func (o oneToken) Token(context.Context, string) (secret.Value, error) {
	if o.token == "" {
		return secret.New("registered"), nil
	}
	return secret.New(o.token), nil
}
func (oneToken) Reject(string, secret.Value) bool { return false }

// resolve has every name of this process stand for the address, during the test.
func resolve(t *testing.T, addr netip.Addr) {
	before := net.DefaultResolver
	var asking sync.Mutex // orders who asks before the end, which no dial waits for
	t.Cleanup(func() {
		asking.Lock()
		defer asking.Unlock()
		net.DefaultResolver = before
	})
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		asking.Lock()
		defer asking.Unlock()
		ours, theirs := net.Pipe()
		go answerWith(ours, addr)
		return theirs, nil
	}}
}

// answerWith speaks DNS over a stream: the length in two bytes, then the message
// (RFC 1035, section 4). It answers one question.
func answerWith(conn net.Conn, addr netip.Addr) {
	defer conn.Close()
	buf := make([]byte, 1024)
	size, err := conn.Read(buf)
	if err != nil || size < 14 {
		return
	}
	const headerSize, typeA, typeAAAA = 12, 1, 28
	query := buf[2:size]
	end := headerSize + strings.IndexByte(string(query[headerSize:]), 0) + 5 // the name, its type and class
	data, kind := addr.AsSlice(), byte(typeAAAA)
	if addr.Is4() {
		kind = typeA
	}
	reply := append([]byte(nil), query[:end]...)
	reply[2], reply[3] = 0x84, 0                              // an answer, with authority
	copy(reply[4:headerSize], []byte{0, 1, 0, 0, 0, 0, 0, 0}) // one question, no more
	if query[end-3] == kind {
		reply[7] = 1
		reply = append(reply, 0xc0, headerSize, 0, kind, 0, 1, 0, 0, 0, 0, 0, byte(len(data)))
		reply = append(reply, data...)
	}
	_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
}

// TestARegistrantLearnsOneThingOfAnAddress: the defence is the probe's one sentence
// for all that can't be connected to, or a probe would scan the hub's network.
func TestARegistrantLearnsOneThingOfAnAddress(t *testing.T) {
	n := newTenant(t)
	a := newAuthority(t)
	refusing := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	closed := refusing.Addr().String()
	_ = refusing.Close()
	untrusted := newAuthority(t).serve(t, "127.0.0.1:0", http.NotFoundHandler())
	servers := map[string]string{
		"refuses the connection":        "https://" + closed,
		"has a certificate of another":  untrusted.URL,
		"is never heard of":             "https://" + newWitness(t, "127.0.0.1:0").address,
		"is certified for another host": a.serve(t, "127.0.0.2:0", http.NotFoundHandler()).URL,
	}
	names := map[string]string{}
	for sentence, server := range servers {
		names[sentence] = strings.ReplaceAll(sentence, " ", "-")
		n.registers(names[sentence], must(kubeconfig.New(server, a.pem, secret.New("registered")))(t).Encode())
	}

	// A name is the one way past admission to what is denied, as above.
	resolve(t, netip.MustParseAddr("::1"))
	denied := probe.Run(t.Context(), probe.Spec{Namespace: n.name, Name: "denied", UID: "1", RunID: "RUN"}, func(context.Context) (probe.API, error) {
		return bringTo(t, a, "https://"+apiName+":6443", address.Options{Allow: []string{"127.0.0.0/8"}}), nil
	}, nobody{})
	var want string
	for _, c := range denied.Checks {
		if c.Name == registryv1alpha1.CheckReachable {
			want = c.Message
		}
	}
	if denied.State != registryv1alpha1.TargetUnreachable || want == "" {
		t.Fatalf("a denied address: %+v", denied)
	}
	for sentence, name := range names {
		t.Run(sentence, func(t *testing.T) {
			row := n.ended(name, "")
			got := check(t, row, registryv1alpha1.CheckReachable)
			if row.Status.State != registryv1alpha1.TargetUnreachable || got.Result != registryv1alpha1.CheckFailed {
				t.Errorf("it's %s: %+v", row.Status.State, got)
			}
			if said := strings.ReplaceAll(got.Message, row.Status.Run.ID, "RUN"); said != want {
				t.Errorf("the message is\n%s\nand of a denied address\n%s", said, want)
			}
		})
	}
}

// TestARangeThatTheOperatorDeniesIsNotConnectedTo: the defence is the hub's own
// --target-deny-addresses, which admission doesn't give away: what is denied there
// looks like any other address, and the probe doesn't connect to it.
func TestARangeThatTheOperatorDeniesIsNotConnectedTo(t *testing.T) {
	requireNode(t)
	n, a := newTenant(t), newAuthority(t)
	denied := newWitness(t, net.JoinHostPort(acme().Node.Address, "0"))
	n.registers("denied", must(kubeconfig.New("https://"+denied.address, a.pem, secret.New("registered")))(t).Encode())
	row := n.ended("denied", "")
	if got := check(t, row, registryv1alpha1.CheckReachable); row.Status.State != registryv1alpha1.TargetUnreachable || strings.Contains(got.Message, "denies") {
		t.Errorf("it's %s: %+v", row.Status.State, got)
	}
	if denied.came.Load() != 0 {
		t.Error("the hub connected to it")
	}
	log := string(must(os.ReadFile(hub.Hub.Server.LogFile()))(t))
	want := "address " + acme().Node.Address + " is denied: in a range that the operator denies"
	if !slices.ContainsFunc(strings.Split(log, "\n"), func(line string) bool {
		return strings.Contains(line, want) && strings.Contains(line, row.Status.Run.ID)
	}) {
		t.Errorf("the hub's log has no line with the run and %q", want)
	}
}

// nobody keeps no progress.
type nobody struct{}

func (nobody) Checked(context.Context, []registryv1alpha1.TargetCheck)           {}
func (nobody) Identified(context.Context, registryv1alpha1.TargetIdentity) error { return nil }
func (nobody) CanaryNamed(context.Context, string) error                         { return nil }
func (nobody) CanaryCreated(context.Context, types.UID) error                    { return nil }
func (nobody) AwaitReceipt(context.Context) error                                { return nil }
func (nobody) CanaryDeleted(context.Context)                                     {}
