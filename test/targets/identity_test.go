package targets

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
)

// cooldown is the least time between two reads of a target's keys.
const cooldown = 10 * time.Second

// stranger is a post that must be refused.
type stranger struct {
	sentence, pod, token string
	reason               string
}

// strangers are whoever isn't the pod: each has all that the pod has but for one
// thing.
func strangers(t *testing.T, f, twin *fakeTarget, pod, twinPod *corev1.Pod) []stranger {
	t.Helper()
	own := func(namespace, serviceAccount, name, uid string) map[string]any {
		return map[string]any{
			"sub":           "system:serviceaccount:" + namespace + ":" + serviceAccount,
			"kubernetes.io": boundTo(namespace, serviceAccount, map[string]any{"name": name, "uid": uid}),
		}
	}
	signed := func(changes map[string]any) string { return f.key().sign(t, f.claims(pod, changes)) }
	uid := string(pod.UID)
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).Unix() }
	return []stranger{
		{"another pod", pod.Name, signed(own(team, "default", "work-1", string(uuid.NewUUID()))), "OtherPod"},
		{"another pod, under its own name", "work-1", signed(own(team, "default", "work-1", string(uuid.NewUUID()))), "UnknownPod"},
		{"a pod of the name with another UID", pod.Name, signed(own(team, "default", pod.Name, string(uuid.NewUUID()))), "OtherPod"},
		{"a pod of another namespace", pod.Name, signed(own("other", "default", pod.Name, uid)), "Namespace"},
		{"a pod of another ServiceAccount", pod.Name, signed(own(team, "builder", pod.Name, uid)), "ServiceAccount"},
		{"the ServiceAccount without a pod", pod.Name, signed(map[string]any{"kubernetes.io": boundTo(team, "default", nil)}), "NoPod"},
		{"the pod, a while ago", pod.Name, signed(map[string]any{"iat": ago(time.Hour), "nbf": ago(time.Hour), "exp": ago(time.Second)}), "Expired"},
		{"the pod, with a token for its own API server", pod.Name, signed(map[string]any{"aud": []string{f.issuer}}), "Audience"},
		{"the pod, with a token for others too", pod.Name, signed(map[string]any{"aud": []string{hub.Hub.ExternalURL, f.issuer}}), "Audience"},
		{"a pod of another issuer", pod.Name, signed(map[string]any{"iss": "https://elsewhere.example"}), "Issuer"},
		{"the canary of another target with the same issuer", pod.Name, twin.token(t, twinPod), "OtherPod"},
		{"another target with the same issuer, which speaks of the pod", pod.Name, twin.key().sign(t, f.claims(pod, nil)), "UnknownKey"},
		{"another target that calls its key as the target does", pod.Name, podKey{f.key().id, twin.key().private}.sign(t, f.claims(pod, nil)), "Signature"},
		{"nobody", pod.Name, "", "NoToken"},
		{"somebody without a signature", pod.Name, "eyJhbGciOiJub25lIn0.e30.", "Algorithm"},
	}
}

// TestOnlyThePodItselfIsBelieved posts to the external listener while a run waits
// for its canary. The defences are the checks of package podidentity, one a row,
// the UID that the hub has recorded, and the key set's cooldown and overlap.
func TestOnlyThePodItselfIsBelieved(t *testing.T) {
	n := newTenant(t)
	a := newAuthority(t)
	f, twin := a.target(t, "key-1"), a.target(t, "twin-1")
	n.registers("one", f.kubeconfig(t))
	n.registers("twin", twin.kubeconfig(t))
	pod, twinPod := f.awaitCanary(t), twin.awaitCanary(t)
	good := newPoster(t, "127.0.0.2")
	within(t, 30*time.Second, "the hub knows the pod", func(ctx context.Context) error { return good.accepted(ctx, pod.Name, f.token(t, pod)) })
	first := time.Now()
	fetched := f.asked(callKeys)
	if fetched != 2 {
		t.Errorf("the keys were read %d times, want once by the probe and once by the listener", fetched)
	}

	var want []string
	for i, s := range strangers(t, f, twin, pod, twinPod) {
		t.Run("refuses "+s.sentence, func(t *testing.T) {
			got, err := newPoster(t, fmt.Sprintf("127.0.3.%d", i+1)).post(t.Context(), s.pod, s.token)
			if diff := cmp.Diff(rejected(), got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
		want = append(want, s.reason)
	}
	within(t, time.Minute, "the trail says why", func(context.Context) error {
		got := refusals(t, pod.Name, "work-1")
		got = got[max(0, len(got)-len(want)):] // before, the hub didn't know the pod
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})

	// A canary lives for 90 seconds, so the other one comes before what takes long.
	within(t, time.Minute, "the canary of the other target is taken", func(ctx context.Context) error {
		return newPoster(t, "127.0.0.5").takes(ctx, twinPod.Name, twin.token(t, twinPod))
	})

	storm(t, f, pod)
	atMost := func() {
		t.Helper()
		most := 1 + int(time.Since(first)/cooldown)
		if got := f.asked(callKeys) - fetched; got > most {
			t.Errorf("the keys were read %d times in %s", got, time.Since(first))
		}
	}
	atMost()

	old, rotated := f.key(), newPodKey(t, "key-2")
	f.rotate(rotated)
	within(t, 3*cooldown, "the new key is known", func(ctx context.Context) error {
		return newPoster(t, "127.0.0.4").accepted(ctx, pod.Name, rotated.sign(t, f.claims(pod, nil)))
	})
	if err := good.accepted(t.Context(), pod.Name, old.sign(t, f.claims(pod, nil))); err != nil {
		t.Errorf("a token by the key before: %v", err)
	}
	atMost()

	right := f.token(t, pod)
	if err := good.takes(t.Context(), pod.Name, right); err != nil {
		t.Fatal(err)
	}
	row := n.ended("one", "")
	if row.Status.State != registryv1alpha1.TargetReady || row.Status.Run.Canary.ReceivedAt == nil {
		t.Errorf("it's %s, and the canary is %+v: %s", row.Status.State, row.Status.Run.Canary, row.Status.Failing)
	}
	if left := f.running(); len(left) != 0 {
		t.Errorf("pods %s are left behind", left)
	}
	within(t, time.Minute, "the run is over for the listener too", func(ctx context.Context) error {
		got, err := good.post(ctx, pod.Name, right)
		if err == nil && got != rejected() {
			err = fmt.Errorf("the answer is %+v", got)
		}
		return err
	})
}

// storm shows a thousand tokens at once, each by a key of its own name and all of
// whoever knows the pod's UID.
func storm(t *testing.T, f *fakeTarget, pod *corev1.Pod) {
	t.Helper()
	const posts, sources = 1000, 50
	key := newKey(t)
	before, began := f.asked(callKeys), time.Now()
	var all sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for s := range sources {
		p := newPoster(t, fmt.Sprintf("127.0.4.%d", s+1))
		for i := range posts / sources {
			token := podKey{fmt.Sprintf("unknown-%d-%d", s, i), key}.sign(t, f.claims(pod, nil))
			all.Go(func() {
				got, err := p.post(t.Context(), pod.Name, token)
				mu.Lock()
				defer mu.Unlock()
				if codes[got.Code]++; err != nil || got != rejected() && got.Code != http.StatusTooManyRequests {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
	}
	all.Wait()
	t.Logf("%d posts by unknown keys in %s: %v; the keys were read %d times", posts, time.Since(began).Round(time.Millisecond), codes, f.asked(callKeys)-before)
	if codes[http.StatusUnauthorized] < 2 {
		t.Errorf("hardly a token was checked: %v", codes)
	}
}

// refusals are the reasons in the hub's trail for posts to these pods, but for
// those that asked whether a token is accepted.
func refusals(t *testing.T, pods ...string) []string {
	t.Helper()
	var reasons []string
	for line := range bytes.Lines(must(os.ReadFile(hub.Hub.Server.LogFile()))(t)) {
		var record audit.Record
		if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &record) != nil || record.Event != audit.EventArtifactRefused {
			continue
		}
		for _, pod := range pods {
			if record.Name == pod && record.Reason != "TooLarge" && record.Reason != "NotRecorded" {
				reasons = append(reasons, record.Reason)
			}
		}
	}
	return reasons
}
