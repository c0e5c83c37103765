package app

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The line is net/http's own, so this sees that it's still the one that is dropped.
func TestWhatComesOnAnIdleConnectionIsntLogged(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	idle, closed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(closed)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-idle
		_, _ = io.WriteString(conn, "Authorization: Bearer the-token\r\n")
		_, _ = io.Copy(io.Discard, conn) // until the client has had enough
	}()
	var out bytes.Buffer
	before := log.Writer()
	defer log.SetOutput(before)
	log.SetOutput(unquoted{&out})
	log.Print("something else")

	client := &http.Client{Transport: &http.Transport{}}
	response, err := client.Get("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	close(idle)
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("the client kept the connection")
	}
	if got := out.String(); strings.Contains(got, "the-token") || !strings.Contains(got, "something else") {
		t.Errorf("the log is %q", got)
	}
}
