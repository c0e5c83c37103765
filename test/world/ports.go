package world

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// ports are the TCP ports that the world's processes listen on. They must be
// known before the processes run, because certificates, kubeconfigs and the
// mirror's URL name them, and must stay ours while a process is down.
//
// Asking the system for a free port would give one of the range that outgoing
// connections use, so that any client could take it meanwhile. These lie below
// that range, and the UDP port of the same number, held for as long as the
// world lives, keeps other worlds off.
type ports struct {
	mu   sync.Mutex
	held []net.PacketConn
}

const (
	firstPort = 20000
	lastPort  = 29999
)

// take reserves a port on loopback.
func (p *ports) take() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		hold, err := net.ListenPacket("udp4", address)
		if err != nil {
			continue
		}
		probe, err := net.Listen("tcp4", address)
		if err != nil {
			_ = hold.Close()
			continue
		}
		_ = probe.Close()
		p.held = append(p.held, hold)
		return port, nil
	}
	return 0, errors.New("no free port between 20000 and 29999 on 127.0.0.1 in a hundred tries")
}

// TakePort reserves a port for what a test starts itself.
func (w *World) TakePort() (int, error) { return w.ports.take() }

// release gives the ports back.
func (p *ports) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, hold := range p.held {
		_ = hold.Close()
	}
}
