package world

import (
	"fmt"
	"net"
	"testing"
)

func TestPorts(t *testing.T) {
	var ours ports
	t.Cleanup(ours.release)
	port, err := ours.take()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)

	server, err := net.Listen("tcp4", address)
	if err != nil {
		t.Fatalf("the process that the port is for can't listen on it: %v", err)
	}
	_ = server.Close()

	if other, err := net.ListenPacket("udp4", address); err == nil {
		_ = other.Close()
		t.Error("another world could reserve the port while its process is down")
	}
	ours.release()
	other, err := net.ListenPacket("udp4", address)
	if err != nil {
		t.Fatalf("the port isn't free after release: %v", err)
	}
	_ = other.Close()
}
