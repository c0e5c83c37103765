package ingest

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"cellcast.io/cellcast/pkg/audit"
)

// floodConnections is how many post at once, each from an address of its own.
const floodConnections = 64

// floodPosts is how many posts either flood has; CELLCAST_FLOOD_POSTS says another
// number.
func floodPosts(t *testing.T) int64 {
	text := os.Getenv("CELLCAST_FLOOD_POSTS")
	if text == "" {
		return 1500
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		t.Fatalf("CELLCAST_FLOOD_POSTS is %q, no number of posts", text)
	}
	return n
}

// tally counts records.
type tally struct {
	mu      sync.Mutex
	reasons map[string]int
}

func (c *tally) Write(record audit.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reasons[record.Reason]++
	return nil
}

func (c *tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var words []string
	for _, reason := range slices.Sorted(maps.Keys(c.reasons)) {
		words = append(words, fmt.Sprintf("%s %d", cmp.Or(reason, "accepted"), c.reasons[reason]))
	}
	return strings.Join(words, ", ")
}

// client posts to the server from an address of loopback.
type client struct {
	*http.Client
	server *httptest.Server
}

func newClient(server *httptest.Server, from string) *client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	transport := &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	return &client{&http.Client{Transport: transport, Timeout: 30 * time.Second}, server}
}

func (c *client) post(ctx context.Context, name, token string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server.URL+"/api/pods/"+name+"/artifacts/canary", strings.NewReader("alive"))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// attack is post i of a flood. Half of the posts are by strangers, and half by
// somebody on the target, who knows the pod's UID.
func attack(t *testing.T, s *scene, i int64) (name, token string) {
	strange := signingKey{rand.Text(), s.otherKey.private}
	honest := func(key signingKey, name string, uid types.UID) string { return key.token(t, claimsFor(name, uid)) }
	switch i % 8 {
	case 0:
		return strings.ToLower(rand.Text()), random(t)
	case 1:
		return "work-1", random(t)
	case 2:
		return "work-3", "eyJhbGciOiJub25lIn0." + random(t) + "."
	case 3: // another target's pod of the same name
		return "work-1", honest(s.otherKey, "work-1", types.UID(rand.Text()))
	case 4:
		return "work-1", honest(strange, "work-1", podUID)
	case 5:
		return "work-1", honest(signingKey{"k", s.otherKey.private}, "work-1", podUID)
	case 6:
		return "work-3", honest(strange, "work-3", podUID)
	default:
		return "work-3", honest(s.otherKey, "work-3", podUID)
	}
}

func random(t *testing.T) string {
	t.Helper()
	junk := make([]byte, 600)
	if _, err := rand.Read(junk); err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(junk)
}

// heap is what lives, in bytes.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestFlood floods a real listener. It holds the bounds, and says with -v what
// the flood cost.
func TestFlood(t *testing.T) {
	for sentence, rates := range map[string]Rates{
		"from as many addresses as connections": {PerSecond: 200, PerSource: 20, PerTarget: DefaultPerTarget},
		"through a proxy":                       {PerSecond: 200, PerTarget: DefaultPerTarget},
	} {
		t.Run(sentence, func(t *testing.T) { flood(t, newScene(t, rates)) })
	}
}

func flood(t *testing.T, s *scene) {
	counted := &tally{reasons: map[string]int{}}
	s.audit = counted
	server := httptest.NewUnstartedServer(nil)
	server.Config = external(s)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	steady := newClient(server, "127.0.0.2")
	if _, err := steady.post(t.Context(), "work-0", "x"); err != nil {
		t.Skipf("no second address on loopback: %v", err)
	}
	good := map[string]string{"work-1": s.broughtKey.token(t, claimsFor("work-1", podUID)), "work-3": s.cell.token(t, claimsFor("work-3", podUID))}
	began := time.Now() // from here the reads of the keys and the reviews count
	for name, token := range good {
		if code, err := steady.post(t.Context(), name, token); code != http.StatusNoContent {
			t.Fatalf("before the flood: %d, %v", code, err)
		}
	}

	before, flooded := heap(), time.Now()
	ctx, over := context.WithCancel(t.Context())
	go func() { defer over(); storm(t, s, server) }()
	first := newFirstPosts(t, s, server)
	var latencies []time.Duration
	pace := time.NewTicker(100 * time.Millisecond) // half of what the source may
	defer pace.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		name := []string{"work-1", "work-3"}[i%2]
		start := time.Now()
		if code, err := steady.post(t.Context(), name, good[name]); code != http.StatusNoContent {
			t.Errorf("a good post amid the flood: %d, %v", code, err)
		}
		latencies = append(latencies, time.Since(start))
		if i%5 == 0 {
			first.start(i)
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
	}
	lasted := time.Since(flooded)
	first.wait()
	elapsed := time.Since(began)
	server.CloseClientConnections()
	after := heap()

	if most := 2*DefaultPerTarget + int(DefaultPerTarget*elapsed.Seconds()) + 2; s.fleet.reviews > most {
		t.Errorf("%d TokenReviews in %s, want %d at most", s.fleet.reviews, elapsed, most)
	}
	if most := 1 + int(elapsed/(10*time.Second)); s.brought.reads > most {
		t.Errorf("the keys were read %d times in %s, want %d at most", s.brought.reads, elapsed, most)
	}
	if grown := int64(after) - int64(before); grown > 32<<20 {
		t.Errorf("the heap grew by %d KiB", grown>>10)
	}
	slices.Sort(latencies)
	t.Logf("%d posts from %d connections in %s", floodPosts(t), floodConnections, lasted.Round(time.Millisecond))
	t.Logf("answers: %s", counted)
	t.Logf("TokenReviews: %d; reads of the keys: %d", s.fleet.reviews, s.brought.reads)
	t.Logf("heap: %d KiB before, %d KiB after", before>>10, after>>10)
	t.Logf("good posts: %d, all taken; latency p50 %s, p99 %s", len(latencies), latencies[len(latencies)/2], latencies[len(latencies)*99/100])
	t.Logf("first posts of new pods: %s", first)
}

// storm is the flood itself.
func storm(t *testing.T, s *scene, server *httptest.Server) {
	var connections sync.WaitGroup
	var next atomic.Int64
	posts := floodPosts(t)
	for c := range floodConnections {
		connections.Go(func() {
			flooder := newClient(server, fmt.Sprintf("127.0.1.%d", c+1))
			defer flooder.CloseIdleConnections()
			for i := next.Add(1) - 1; i < posts; i = next.Add(1) - 1 {
				name, token := attack(t, s, i)
				if code, err := flooder.post(t.Context(), name, token); err != nil || code < 400 {
					t.Errorf("post %d of the flood: %d, %v", i, code, err)
					return
				}
			}
		})
	}
	connections.Wait()
}

// firstPosts are those of pods that have just been created, which try again when
// they're told to.
type firstPosts struct {
	t      *testing.T
	s      *scene
	client *client

	posts sync.WaitGroup
	mu    sync.Mutex
	took  []time.Duration
	tries int
}

func newFirstPosts(t *testing.T, s *scene, server *httptest.Server) *firstPosts {
	return &firstPosts{t: t, s: s, client: newClient(server, "127.0.0.3")}
}

// start lets pod i begin, on either target by turns.
func (f *firstPosts) start(i int) {
	name, uid := fmt.Sprintf("new-%d", i), types.UID(rand.Text())
	registered, key := brought, f.s.broughtKey
	if i%2 == 0 {
		registered, key = fleet, f.s.cell
	}
	f.s.records.expect(name, Expected{Registration: registered, UID: uid})
	token := key.token(f.t, claimsFor(name, uid))
	f.posts.Go(func() {
		began := time.Now()
		for tries := 1; ; tries++ {
			code, err := f.client.post(f.t.Context(), name, token)
			if code == http.StatusNoContent {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.took, f.tries = append(f.took, time.Since(began)), max(f.tries, tries)
				return
			}
			if err != nil || code != http.StatusTooManyRequests && code != http.StatusServiceUnavailable {
				f.t.Errorf("the first post of %s: %d, %v", name, code, err)
				return
			}
			<-time.After(soon) // as Retry-After says
		}
	})
}

func (f *firstPosts) wait() { f.posts.Wait() }

// String tells how long it took them.
func (f *firstPosts) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.took)
	return fmt.Sprintf("%d, all taken after %d tries at most; p50 %s, longest %s", len(f.took), f.tries,
		f.took[len(f.took)/2].Round(time.Microsecond), f.took[len(f.took)-1].Round(time.Microsecond))
}
