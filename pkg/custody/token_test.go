package custody

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/kubeconfig/address"
	"cellcast.io/cellcast/pkg/secret"
)

var _ cell.TokenSource = (*Custody)(nil)

// loaded is a world in which target A has the old token.
func loaded(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.put(t, "eu", server, oldToken)
	w.mustLoad(t, secretRef(uidA, "eu"))
	return w
}

func (w *world) wantReject(t *testing.T, token string, want bool) {
	t.Helper()
	if got := w.Reject(addressA, secret.New(token)); got != want {
		t.Errorf("Reject says %t", got)
	}
}

func (w *world) wantReads(t *testing.T, want int) {
	t.Helper()
	if got := w.secrets.count("eu"); got != want {
		t.Errorf("the source was read %d times, not %d", got, want)
	}
}

func TestARotatedTokenIsFoundOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := loaded(t)
		w.put(t, "eu", server, newToken)
		w.wantToken(t, addressA, oldToken)
		w.wantReject(t, oldToken, true)
		w.wantReads(t, 1) // Token reads, Reject doesn't
		w.wantToken(t, addressA, newToken)
		w.wantToken(t, addressA, newToken)
		w.wantReads(t, 2)
		if got := w.onDisk(t); got != string(uidA) {
			t.Errorf("there is %s", got)
		}
		w.wantReject(t, oldToken, true) // of a call that was under way
		w.wantToken(t, addressA, newToken)
		w.wantReads(t, 2)
		one := "allowed " + addressA + " Secret payments/eu"
		if diff := cmp.Diff([]string{one, one}, w.trail.all(t)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestATargetThatRefusesEverythingCausesOneReadInTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := loaded(t)
		for reads := 2; reads < 6; reads++ {
			w.wantReject(t, oldToken, true)
			w.wantToken(t, addressA, oldToken)
			w.wantReads(t, reads)
			for range 100 {
				w.wantReject(t, oldToken, false)
				w.wantToken(t, addressA, oldToken)
			}
			time.Sleep(cooldown - time.Nanosecond)
			w.wantReject(t, oldToken, false)
			w.wantReads(t, reads)
			time.Sleep(time.Nanosecond)
		}
	})
}

func TestManyRefusalsAtOnceCauseOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := loaded(t)
		w.put(t, "eu", server, newToken)
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				w.wantReject(t, oldToken, true)
				w.wantToken(t, addressA, newToken)
			})
		}
		all.Wait()
		w.wantReads(t, 2)
	})
}

func TestATokenOfAnotherConnectionIsntGivenForThisOne(t *testing.T) {
	tests := map[string]func(t *testing.T, w *world){
		"another server": func(t *testing.T, w *world) { w.put(t, "eu", "https://api.elsewhere.example", newToken) },
		"another port":   func(t *testing.T, w *world) { w.put(t, "eu", server+":6443", newToken) },
		"another CA": func(t *testing.T, w *world) {
			w.ca = newCA(t)
			w.put(t, "eu", server, newToken)
		},
		"another server with the same token": func(t *testing.T, w *world) { w.put(t, "eu", "https://api.elsewhere.example", oldToken) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := loaded(t)
				change(t, w)
				w.wantReject(t, oldToken, true)
				for range 2 {
					if token, err := w.Token(t.Context(), addressA); !errors.Is(err, ErrConnectionChanged) || !token.IsZero() {
						t.Fatalf("Token gives %s, %v", token.Reveal(), err)
					}
					w.wantReject(t, oldToken, false)
					time.Sleep(2 * cooldown)
				}
				w.wantReads(t, 2)
				if got := w.onDisk(t); got != "" {
					t.Errorf("there is %s", got)
				}
				w.mustLoad(t, secretRef(uidA, "eu"))
				if _, err := w.Token(t.Context(), addressA); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestASourceThatIsAwayWhenATokenIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := loaded(t)
		w.secrets.do(func() { w.secrets.down = true })
		w.wantReject(t, oldToken, true)
		for range 10 {
			_, err := w.Token(t.Context(), addressA)
			if u, ok := errors.AsType[*Unavailable](err); !ok || u.Reason != ReasonUnreachable {
				t.Fatalf("got %v", err)
			}
			w.wantReject(t, oldToken, false)
		}
		w.wantReads(t, 2)
		w.put(t, "eu", server, newToken)
		w.secrets.do(func() { w.secrets.down = false })
		time.Sleep(cooldown)
		w.wantToken(t, addressA, newToken)
		w.wantReads(t, 3)
	})
}

func TestASecretThatIsGoneWhenATokenIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := loaded(t)
		w.secrets.do(func() { delete(w.secrets.held, "eu") })
		w.wantReject(t, oldToken, true)
		for range 3 {
			_, err := w.Token(t.Context(), addressA)
			if u, ok := errors.AsType[*Unavailable](err); !ok || u.Reason != ReasonAbsent {
				t.Fatalf("got %v", err)
			}
			time.Sleep(2 * cooldown)
		}
		w.wantReads(t, 2) // the rest is for Load
		if got := w.onDisk(t); got != "" {
			t.Errorf("there is %s", got)
		}
		w.put(t, "eu", server, newToken)
		w.mustLoad(t, secretRef(uidA, "eu"))
		w.wantToken(t, addressA, newToken)
	})
}

func TestWhoGoesEndsNobodysRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := loaded(t)
		w.put(t, "eu", server, newToken)
		slow := &slowSecrets{Secrets: w.secrets, asked: make(chan struct{}), release: make(chan struct{})}
		w.options.Secrets = slow
		w.wantReject(t, oldToken, true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		started := time.Now()
		if _, err := w.Token(ctx, addressA); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(started); took != time.Second {
			t.Errorf("whoever had a second waited %s", took)
		}
		close(slow.release)
		w.wantToken(t, addressA, newToken) // by the read that was under way
		w.wantReads(t, 2)
	})
}

func TestLoadTakesTheSuspicionAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := loaded(t)
		w.wantReject(t, oldToken, true)
		w.mustLoad(t, secretRef(uidA, "eu"))
		w.wantToken(t, addressA, oldToken)
		w.wantReads(t, 2)
	})
}

func TestALoadThatIsUnderWayServesWhoeverLooksForAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := loaded(t)
		w.put(t, "eu", server, newToken)
		slow := &slowSecrets{Secrets: w.secrets, asked: make(chan struct{}), release: make(chan struct{})}
		w.options.Secrets = slow
		var both sync.WaitGroup
		both.Go(func() { w.mustLoad(t, secretRef(uidA, "eu")) })
		<-slow.asked
		w.wantReject(t, oldToken, true)
		both.Go(func() { w.wantToken(t, addressA, newToken) })
		synctest.Wait()
		close(slow.release)
		both.Wait()
		w.wantReads(t, 2)
	})
}

// The client of a brought target, as the hub has it: the target learns a new token,
// and then believes none.
func TestAClientFollowsARotation(t *testing.T) {
	believed := newToken
	var mu sync.Mutex
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+believed {
			http.Error(rw, "who?", http.StatusUnauthorized)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":"system:serviceaccount:a:b"}}}`)
	}))
	api.Config.ErrorLog = log.New(io.Discard, "", 0)
	api.StartTLS()
	defer api.Close()

	w := newWorld(t)
	permitted, err := address.New(address.Options{Allow: []string{"127.0.0.0/8"}, Ports: []string{"1-65535"}})
	if err != nil {
		t.Fatal(err)
	}
	w.options.Permitted = permitted
	w.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	w.put(t, "eu", api.URL, oldToken)
	c := w.mustLoad(t, secretRef(uidA, "eu"))
	client, err := cell.NewClients(w.Custody, cell.Options{}).Bring(cell.Brought{Address: c.Address, Credential: c.Credential(), Endpoint: c.Server, CABundle: c.CAData})
	if err != nil {
		t.Fatal(err)
	}

	w.put(t, "eu", api.URL, newToken)
	if _, err := client.WhoAmI(t.Context()); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
	mu.Lock()
	believed = "another"
	mu.Unlock()
	for range 20 {
		if _, err := client.WhoAmI(t.Context()); failure.Of(err) != failure.Unauthenticated {
			t.Errorf("got %v", err)
		}
	}
	w.wantReads(t, 2)
	if err := w.Forget(uidA); err != nil {
		t.Error(err)
	}
	if _, err := client.WhoAmI(t.Context()); failure.Of(err) != failure.NoHubToken || !errors.Is(err, ErrNotLoaded) || strings.Contains(err.Error(), "canary") {
		t.Errorf("after it was forgotten: %v", err)
	}
}

// Between the Load of a new server and the client of it, a call of the old client
// may be under way.
func TestTheTokenOfANewServerIsNotShownToTheOldOne(t *testing.T) {
	w := loaded(t)
	old := w.credential(addressA)
	for what, at := range map[string]string{"another server": "https://elsewhere.acme.example", "the same server again": server} {
		w.put(t, "eu", at, newToken)
		now := w.mustLoad(t, secretRef(uidA, "eu"))
		token, err := w.Custody.Token(t.Context(), old)
		if same := at == server; same != (err == nil) || !same && !errors.Is(err, ErrConnectionChanged) {
			t.Errorf("%s: the old client gets %s, %v", what, token.Reveal(), err)
		}
		if w.Custody.Reject(old, secret.New(newToken)) && at != server {
			t.Errorf("%s: the old client can have the source read", what)
		}
		if _, err := w.Custody.Token(t.Context(), now.Credential()); err != nil {
			t.Errorf("%s: the new client: %v", what, err)
		}
	}
}

func TestATargetForgottenWhileItsTokenWasLookedForLeavesNothing(t *testing.T) {
	w := loaded(t)
	w.put(t, "eu", server, newToken)
	slow := &slowSecrets{Secrets: w.secrets, asked: make(chan struct{}), release: make(chan struct{})}
	w.options.Secrets = slow
	w.wantReject(t, oldToken, true)
	given := make(chan error)
	go func() {
		_, err := w.Token(t.Context(), addressA)
		given <- err
	}()
	<-slow.asked
	if err := w.Forget(uidA); err != nil {
		t.Error(err)
	}
	close(slow.release)
	if err := <-given; !errors.Is(err, ErrNotLoaded) {
		t.Errorf("got %v", err)
	}
	if got := w.onDisk(t); got != "" {
		t.Errorf("there is %s", got)
	}
}
