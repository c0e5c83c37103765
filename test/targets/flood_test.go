package targets

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// floodConnections is how many post at once, each from an address of its own.
const floodConnections = 64

// floodPosts is how many posts a flood has; CELLCAST_FLOOD_POSTS says another
// number.
func floodPosts(t *testing.T) int64 {
	t.Helper()
	posts := must(strconv.ParseInt(cmp.Or(os.Getenv("CELLCAST_FLOOD_POSTS"), "2000"), 10, 64))(t)
	if posts < 1 {
		t.Fatalf("CELLCAST_FLOOD_POSTS is %d", posts)
	}
	return posts
}

// flood posts what attack makes, and counts the answers by their code. None may be
// anything but 401, 429 and those that are permitted too.
func flood(t *testing.T, poster func(from string) *poster, attack func(i int64) (pod, token string), permitted ...int) map[int]int {
	t.Helper()
	posts := floodPosts(t)
	permitted = append(permitted, http.StatusTooManyRequests)
	var connections sync.WaitGroup
	var next atomic.Int64
	var mu sync.Mutex
	codes := map[int]int{}
	for c := range floodConnections {
		p := poster(fmt.Sprintf("127.0.5.%d", c+1))
		connections.Go(func() {
			for i := next.Add(1) - 1; i < posts && t.Context().Err() == nil; i = next.Add(1) - 1 {
				pod, token := attack(i)
				got, err := p.post(t.Context(), pod, token)
				mu.Lock()
				if codes[got.Code]++; err != nil || got != rejected() && !slices.Contains(permitted, got.Code) {
					t.Errorf("post %d: %+v, %v", i, got, err)
				}
				mu.Unlock()
			}
		})
	}
	connections.Wait()
	return codes
}

// invader posts for the canary that there is at the time: half as strangers do,
// and half as somebody on the target who knows its UID.
type invader struct {
	t      *testing.T
	f      *fakeTarget
	other  podKey
	canary atomic.Pointer[corev1.Pod]
}

func (v *invader) attack(i int64) (name, token string) {
	pod := v.canary.Load()
	claims := v.f.claims(pod, nil)
	foreign := v.f.claims(pod, map[string]any{"kubernetes.io": boundTo(team, "default", map[string]any{"name": pod.Name, "uid": string(uuid.NewUUID())})})
	switch i % 8 {
	case 0:
		return strings.ToLower(rand.Text()), junk()
	case 1:
		return pod.Name, junk()
	case 2:
		return pod.Name, "eyJhbGciOiJub25lIn0." + junk() + "."
	case 3: // of another pod, by the target's own key
		return pod.Name, v.f.key().sign(v.t, foreign)
	case 4: // another target's pod of that name
		return pod.Name, v.other.sign(v.t, foreign)
	case 5:
		return pod.Name, podKey{rand.Text(), v.other.private}.sign(v.t, claims)
	case 6:
		return pod.Name, podKey{v.f.key().id, v.other.private}.sign(v.t, claims)
	default: // by the target's own key, for somebody else
		claims["aud"] = []string{v.f.issuer}
		return pod.Name, v.f.key().sign(v.t, claims)
	}
}

func junk() string {
	text := make([]byte, 600)
	_, _ = rand.Read(text)
	return base64.RawURLEncoding.EncodeToString(text)
}

// TestAnInternetFlood floods the hub's external listener, and says with -v what it
// costs. The defences are the bounds of package ingest and the key set's cooldown.
func TestAnInternetFlood(t *testing.T) {
	n := newTenant(t)
	a := newAuthority(t)
	f := a.target(t, "key-1")
	v := &invader{t: t, f: f, other: newPodKey(t, "other-1")}
	n.registers("flooded", f.kubeconfig(t))
	v.canary.Store(f.awaitCanary(t))

	t.Cleanup(must(hub.AllowMetrics(t.Context()))(t))
	reviews, before, heap := tokenReviews(t), resident(t), metric(t, "go_memstats_heap_inuse_bytes")
	memory, began := watchMemory(t), time.Now()
	over, codes := make(chan struct{}), map[int]int{}
	go func() {
		defer close(over)
		// What the target itself signs of a pod that isn't recorded yet is told to wait.
		codes = flood(t, func(from string) *poster { return newPoster(t, from) }, v.attack, http.StatusServiceUnavailable)
	}()
	w := &worker{tenant: n, f: f, poster: newPoster(t, "127.0.0.2")}
	w.run(v, over)
	elapsed := time.Since(began)

	fetched, reviewed := f.asked(callKeys), tokenReviews(t)-reviews
	if most := w.runs + 1 + int(elapsed/cooldown); fetched > most {
		t.Errorf("the keys were read %d times in %s and %d runs, want %d at most", fetched, elapsed, w.runs, most)
	}
	if reviewed != 0 {
		t.Errorf("the fleet's cell was asked for %d TokenReviews of pods that it doesn't have", reviewed)
	}
	most := memory()
	if grown := most - before; grown > 2*mostGrowth {
		t.Errorf("the hub grew by %d MiB", grown>>20)
	}
	t.Logf("%d posts from %d connections in %s", floodPosts(t), floodConnections, elapsed.Round(time.Millisecond))
	t.Logf("answers: %s", counted(codes))
	t.Logf("reads of the keys: %d, of which %d by probes; TokenReviews at the cell: %d", fetched, w.runs, reviewed)
	t.Logf("hub: %d MiB resident before, %d at most, %d after; heap in use %d MiB before, %d after",
		before>>20, most>>20, resident(t)>>20, heap>>20, metric(t, "go_memstats_heap_inuse_bytes")>>20)
	t.Logf("%s", w)
}

// worker is the target's own pods, one after the other, of probe after probe.
type worker struct {
	tenant
	f      *fakeTarget
	poster *poster

	runs     int
	accepted []time.Duration
	receipts []time.Duration
}

// run posts until the flood is over, and at least until one canary's post was
// taken.
func (w *worker) run(v *invader, over <-chan struct{}) {
	for {
		w.runs++
		pod := v.canary.Load()
		token := w.f.token(w.t, pod)
		within(w.t, time.Minute, "the hub knows the pod", func(ctx context.Context) error { return w.poster.accepted(ctx, pod.Name, token) })
		w.wait(pod, token, over)
		start := time.Now()
		within(w.t, 30*time.Second, "the canary's post is taken", func(ctx context.Context) error { return w.poster.takes(ctx, pod.Name, token) })
		w.receipts = append(w.receipts, time.Since(start))
		if row := w.ended("flooded", ""); row.Status.State != registryv1alpha1.TargetReady {
			w.t.Errorf("the target is %s: %s", row.Status.State, row.Status.Failing)
		}
		select {
		case <-over:
			return
		default:
		}
		w.probes("flooded")
		v.canary.Store(w.f.awaitCanary(w.t))
	}
}

// wait shows the token again and again, for less long than a canary has.
func (w *worker) wait(pod *corev1.Pod, token string, over <-chan struct{}) {
	pace := time.NewTicker(100 * time.Millisecond) // half of what a source may
	defer pace.Stop()
	enough := time.After(40 * time.Second)
	for {
		start := time.Now()
		if err := w.poster.accepted(w.t.Context(), pod.Name, token); err != nil {
			w.t.Errorf("a good post amid the flood: %v", err)
		}
		w.accepted = append(w.accepted, time.Since(start))
		select {
		case <-pace.C:
		case <-enough:
			return
		case <-over:
			return
		}
	}
}

// String tells how its posts fared.
func (w *worker) String() string {
	return fmt.Sprintf("good posts: %d whose token was accepted, each over a connection of its own, %s; %d taken, %s",
		len(w.accepted), percentiles(w.accepted), len(w.receipts), percentiles(w.receipts))
}

func percentiles(took []time.Duration) string {
	if len(took) == 0 {
		return "none"
	}
	took = slices.Sorted(slices.Values(took))
	at := func(percent int) time.Duration { return took[(len(took)-1)*percent/100].Round(10 * time.Microsecond) }
	return fmt.Sprintf("p50 %s, p99 %s, longest %s", at(50), at(99), at(100))
}

func counted(codes map[int]int) string {
	var words []string
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		words = append(words, fmt.Sprintf("%d of %d", codes[code], code))
	}
	return strings.Join(words, ", ")
}

// tokenReviews is how many the fleet's cell has been asked for, by its audit log.
func tokenReviews(t *testing.T) int {
	t.Helper()
	return bytes.Count(must(os.ReadFile(hub.Cell("prod-eu").AuditLog))(t), []byte(`"resource":"tokenreviews"`))
}
