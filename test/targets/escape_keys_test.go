package targets

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// mostGrowth is how much more memory the hub may hold for all hostile targets at
// once.
const mostGrowth = 128 << 20

// hostile is a target that means the hub no good.
type hostile struct {
	call call
	does http.HandlerFunc
	item registryv1alpha1.TargetCheckName
	says string
}

// hostiles count in sent the bytes that the hub let them send.
func hostiles(t *testing.T, elsewhere string, sent *atomic.Int64) map[string]hostile {
	const keys = registryv1alpha1.CheckSigningKeys
	flood := func(until int64, pause time.Duration) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/jwk-set+json")
			piece := []byte(`{"keys":[` + strings.Repeat(" ", 64<<10))
			if pause > 0 {
				piece = piece[:1]
			}
			for n := int64(0); n < until && r.Context().Err() == nil; n += int64(len(piece)) {
				if _, err := w.Write(piece); err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
				sent.Add(int64(len(piece)))
				if pause > 0 {
					<-time.After(pause)
				}
			}
		}
	}
	return map[string]hostile{
		"its keys are elsewhere":     {callKeys, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, http.StatusFound) }, keys, "isn't a key set that the hub takes"},
		"its key set has 1 GB":       {callKeys, flood(1<<30, 0), keys, "isn't a key set that the hub takes"},
		"its key set never ends":     {callKeys, flood(1<<62, 50*time.Millisecond), keys, "can't connect"},
		"its key set has 10,000":     {callKeys, manyKeys(newPodKey(t, "key-1")), keys, "isn't a key set that the hub takes"},
		"its document has 1 GB":      {callDiscovery, flood(1<<30, 0), keys, "isn't a key set that the hub takes"},
		"its headers drip":           {callWhoAmI, drip, registryv1alpha1.CheckReachable, "can't connect"},
		"the headers of keys drip":   {callKeys, drip, keys, "can't connect"},
		"its list of rights is 1 GB": {callRules, flood(1<<30, 0), registryv1alpha1.CheckExcess, "no answer that the hub understands"},
	}
}

// manyKeys are few bytes, and one of them checks signatures.
func manyKeys(good podKey) http.HandlerFunc {
	const key = `{"kty":"oct","k":"AA"}`
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		last, _ := json.Marshal(jose.JSONWebKey{Key: good.private.Public(), KeyID: good.id, Algorithm: string(jose.ES256), Use: "sig"})
		_, _ = fmt.Fprintf(w, `{"keys":[%s%s]}`, strings.Repeat(key+",", 9999), last)
	}
}

// drip answers by a byte of its headers at a time.
func drip(w http.ResponseWriter, r *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	for _, b := range []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Drip: " + strings.Repeat("x", 600)) {
		if _, err := conn.Write([]byte{b}); err != nil {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
}

// TestAHostileTargetHarmsNobody: the defences are the client's bounds (1 MiB of an
// answer, ten seconds of a call, no redirect), those of a key set (64 keys), and
// runs that wait for no other.
func TestAHostileTargetHarmsNobody(t *testing.T) {
	n := newTenant(t)
	a := newAuthority(t)
	var elsewhere, sent atomic.Int64
	other := a.serve(t, "127.0.0.1:0", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	healthy := a.target(t, "key-1")
	healthy.lives(t, func() {})

	before, began := resident(t), time.Now()
	memory := watchMemory(t)
	attacks, names := hostiles(t, other.URL, &sent), map[string]string{}
	for sentence, attack := range attacks {
		f := a.target(t, "key-1")
		f.does(attack.call, attack.does)
		names[sentence] = fmt.Sprintf("hostile-%d", len(names))
		n.registers(names[sentence], f.kubeconfig(t))
	}
	n.registers("healthy", healthy.kubeconfig(t))
	row := n.ended("healthy", "")
	if row.Status.State != registryv1alpha1.TargetReady {
		t.Errorf("a healthy target is %s amid hostile ones: %s", row.Status.State, row.Status.Failing)
	}
	took := row.Status.Run.FinishedAt.Sub(row.Status.Run.StartedAt.Time)
	t.Logf("the probe of a healthy target took %s", took)

	for sentence, attack := range attacks {
		t.Run(sentence, func(t *testing.T) {
			row := n.ended(names[sentence], "")
			t.Logf("it ended in %s", row.Status.Run.FinishedAt.Sub(row.Status.Run.StartedAt.Time))
			if got := check(t, row, attack.item); got.Result != registryv1alpha1.CheckFailed || !strings.Contains(got.Message, attack.says) {
				t.Errorf("the item is %+v, want Failed and %q", got, attack.says)
			}
			if row.Status.State == registryv1alpha1.TargetReady {
				t.Error("it's Ready")
			}
		})
	}
	most := memory()
	t.Logf("hub: %d MiB before, %d MiB at most in %s; they sent %d MiB", before>>20, most>>20, time.Since(began).Round(time.Second), sent.Load()>>20)
	if grown := most - before; grown > mostGrowth {
		t.Errorf("the hub grew by %d MiB", grown>>20)
	}
	if got := sent.Load(); got > 64<<20 {
		t.Errorf("the hub let %d MiB be sent", got>>20)
	}
	if got := elsewhere.Load(); got != 0 {
		t.Errorf("the other host got %d requests", got)
	}
}

var residentLine = regexp.MustCompile(`(?m)^VmRSS:\s+([0-9]+) kB$`)

// resident is how much memory the hub's process has, in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	bytes, err := residentOf(hub.Hub.Server.PID())
	if err != nil {
		t.Skipf("the hub's memory can't be read: %v", err)
	}
	return bytes
}

func residentOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	match := residentLine.FindSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("process %d tells no VmRSS", pid)
	}
	kib, err := strconv.ParseInt(string(match[1]), 10, 64)
	return kib << 10, err
}

// watchMemory looks at the hub's memory until the returned function is called,
// which gives the most that was seen.
func watchMemory(t *testing.T) func() int64 {
	t.Helper()
	pid, stop, most := hub.Hub.Server.PID(), make(chan struct{}), make(chan int64)
	go func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		var seen int64
		for {
			now, _ := residentOf(pid)
			seen = max(seen, now)
			select {
			case <-ticker.C:
			case <-stop:
				most <- seen
				return
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-most
	}
}
