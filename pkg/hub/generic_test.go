package hub

import (
	"crypto/x509"
	"testing"
)

// proxy is whether the authority was read.
type proxy bool

func (p proxy) VerifyOptions() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, bool(p) }

func TestAReplicaIsNotReadyBeforeItKnowsTheProxy(t *testing.T) {
	if err := knows(proxy(false)); err == nil {
		t.Error("it's ready, and answers 401 to whoever comes through the hub's API server")
	}
	if err := knows(proxy(true)); err != nil {
		t.Errorf("it isn't ready: %v", err)
	}
}
