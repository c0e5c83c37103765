package ingest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
)

func TestSourcesAreToldApartAndIPv6BySixtyFour(t *testing.T) {
	for sentence, tc := range map[string]struct {
		a, b string
		same bool
	}{
		"two ports of one address":           {"192.0.2.1:1", "192.0.2.1:2", true},
		"two addresses":                      {"192.0.2.1:1", "192.0.2.2:1", false},
		"an address and its mapped form":     {"192.0.2.1:1", "[::ffff:192.0.2.1]:1", true},
		"two mapped forms":                   {"[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:1", false},
		"two addresses of one /64":           {"[2001:db8::1]:1", "[2001:db8::ffff:1]:1", true},
		"two /64 of one /48":                 {"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
		"one address in two zones":           {"[fe80::1%eth0]:1", "[fe80::1%eth1]:1", true},
		"two addresses that can't be read":   {"@", "", true},
		"one that can't be read and another": {"@", "192.0.2.1:1", false},
	} {
		if same := source(tc.a) == source(tc.b); same != tc.same {
			t.Errorf("%s: %s and %s: one source: %t", sentence, source(tc.a), source(tc.b), same)
		}
	}
}

func TestOneSourceTakesNothingFromAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Rates{PerSource: 2})
		token := s.broughtKey.token(t, claimsFor("work-1", podUID))
		for range 4 {
			s.shown(t, "work-1", token, "192.0.2.1:1", "")
		}
		s.shown(t, "work-1", token, "192.0.2.1:2", ReasonSourceRateLimited)
		s.shown(t, "work-1", token, "192.0.2.2:1", "")
		time.Sleep(500 * time.Millisecond)
		s.shown(t, "work-1", token, "192.0.2.1:3", "")
		s.shown(t, "work-1", token, "192.0.2.1:4", ReasonSourceRateLimited)
	})
}

func TestChecksAreRationed(t *testing.T) {
	stranger := newKey(t, "stranger")
	// A flood is by somebody who knows the pod and its UID.
	flood := func(t *testing.T, s *scene, name string, sources int) {
		for i := range 200 {
			s.post(name, stranger.token(t, claimsFor(name, podUID)), fmt.Sprintf("198.51.100.%d:1", i%sources))
		}
	}
	for sentence, tc := range map[string]struct {
		rates   Rates
		sources int
		asked   int    // the cell, by the flood
		pod     string // whose first post follows, from an address of its own
		want    Reason
	}{
		"no rate":                                        {Rates{}, 1, 200, "work-3", ""},
		"one target's flood is bounded":                  {Rates{PerTarget: 4}, 1, 1 + 2, "work-3", ReasonTargetRateLimited},
		"and leaves another target alone":                {Rates{PerTarget: 4}, 1, 1 + 2, "work-1", ""},
		"and another pod of the target":                  {Rates{PerTarget: 4}, 1, 1 + 2, "work-4", ""},
		"the total is bounded":                           {Rates{PerSecond: 4}, 1, 8, "work-1", ReasonTotalRateLimited},
		"a target's flood doesn't eat the total":         {Rates{PerTarget: 4, PerSecond: 2}, 1, 3, "work-1", ""},
		"a source that showed junk leaves others theirs": {Rates{PerTarget: 4, PerSource: 1000}, 1, 1 + 2, "work-3", ""},
		"so do four":                                     {Rates{PerTarget: 4, PerSource: 1000}, 4, 4 + 2, "work-3", ""},
		"eight take all that is to be had at once":       {Rates{PerTarget: 4, PerSource: 1000}, 8, 6 + 2, "work-3", ReasonTargetRateLimited},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, tc.rates)
				s.records.expect("work-4", Expected{Registration: fleet, UID: podUID})
				flood(t, s, "work-3", tc.sources)
				if got := s.fleet.asked(); got != tc.asked {
					t.Errorf("the cell was asked %d times, want %d", got, tc.asked)
				}
				key := map[string]signingKey{"work-1": s.broughtKey, "work-3": s.cell, "work-4": s.cell}[tc.pod]
				s.shown(t, tc.pod, key.token(t, claimsFor(tc.pod, podUID)), someone, tc.want)
			})
		})
	}
}

// With the first burst over, those who showed junk have no more than their share.
func TestFirstPostGetsThroughAFloodThatKnowsThePod(t *testing.T) {
	stranger := newKey(t, "stranger")
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Rates{PerSource: 1000, PerTarget: 4, PerSecond: 200})
		for range 4 {
			for i := range 64 {
				s.post("work-3", stranger.token(t, claimsFor("work-3", podUID)), fmt.Sprintf("198.51.100.%d:1", i%16))
			}
			time.Sleep(time.Second)
		}
		s.shown(t, "work-3", stranger.token(t, claimsFor("work-3", podUID)), "198.51.100.1:1", "Rejected")
		s.shown(t, "work-3", stranger.token(t, claimsFor("work-3", podUID)), "198.51.100.1:1", ReasonTargetRateLimited)
		s.shown(t, "work-3", s.cell.token(t, claimsFor("work-3", podUID)), someone, "")
		time.Sleep(suspectFor)
		s.shown(t, "work-3", s.cell.token(t, claimsFor("work-3", podUID)), "198.51.100.1:1", "")
	})
}

func TestAcceptedPodGetsThroughWhateverTheRates(t *testing.T) {
	stranger := newKey(t, "stranger")
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Rates{PerTarget: 2, PerSecond: 2})
		good := s.cell.token(t, claimsFor("work-3", podUID))
		s.shown(t, "work-3", good, someone, "")
		for minute := range 9 {
			for range 20 {
				s.post("work-3", stranger.token(t, claimsFor("work-3", podUID)), someone)
			}
			s.shown(t, "work-3", s.cell.token(t, claimsFor("work-3", podUID)), someone, ReasonTargetRateLimited)
			asked := s.fleet.asked()
			for range 20 {
				s.shown(t, "work-3", good, someone, "")
			}
			if got, want := s.fleet.asked()-asked, min(minute, 1); got != want {
				t.Errorf("minute %d: the cell was asked %d times for it, want %d", minute, got, want)
			}
			time.Sleep(time.Minute + time.Millisecond)
		}
	})
}

// One that was accepted and no longer is has no privilege left.
func TestPodThatIsGoneCostsAsMuchAsJunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Rates{PerTarget: 0.001})
		good := s.cell.token(t, claimsFor("work-3", podUID))
		s.shown(t, "work-3", good, someone, "")
		s.fleet.set(func(a *api) { a.keys = nil })
		time.Sleep(time.Minute + time.Millisecond)
		s.shown(t, "work-3", good, someone, "Rejected")
		time.Sleep(11 * time.Second)
		s.shown(t, "work-3", good, someone, "Rejected") // the suspects' only one
		time.Sleep(11 * time.Second)
		s.shown(t, "work-3", good, someone, ReasonTargetRateLimited)
	})
}

// No time passes, so nothing is forgotten for its age.
func TestAllThatIsKeptIsBounded(t *testing.T) { synctest.Test(t, allThatIsKeptIsBounded) }

func allThatIsKeptIsBounded(t *testing.T) {
	s := newScene(t, Rates{PerSource: 20, PerTarget: 1e9, PerSecond: 1e9})
	good := s.broughtKey.token(t, claimsFor("work-1", podUID))
	s.shown(t, "work-1", good, someone, "")
	stranger := newKey(t, "stranger")
	head := stranger.token(t, claimsFor("work-1", podUID))
	head = head[:strings.LastIndex(head, ".")+1]
	for i := range 10000 {
		from := fmt.Sprintf("10.0.%d.%d:1", i/250, i%250)
		s.post("work-1", head+fmt.Sprintf("%086d", i), from)
	}
	for what, tc := range map[string]struct{ got, want int }{
		"sources":  {s.sources.known.Len(), maxSources},
		"targets":  {s.clean.known.Len() + s.suspect.known.Len(), 1},
		"accepted": {len(s.accepted.Keys()), 1},
		"rejected": {len(s.rejected.Keys()), maxVerdicts},
		"suspects": {len(s.suspects.Keys()), maxSources},
	} {
		if tc.got != tc.want {
			t.Errorf("%d %s are kept, want %d", tc.got, what, tc.want)
		}
	}
	asked := s.asked()
	for i := range 10000 {
		s.post(fmt.Sprintf("work-%d", i+10), head+"junk", someone)
	}
	if got := len(s.rejected.Keys()); got != maxVerdicts || s.asked() != asked {
		t.Errorf("pods that aren't known: %d verdicts, %d questions", got, s.asked()-asked)
	}
	s.shown(t, "work-1", good, "203.0.113.1:1", "") // junk pushed no accepted token out
}

func TestFaultsAreLoggedOncePerInterval(t *testing.T) {
	var lines []string
	state := klog.CaptureState()
	defer state.Restore()
	klog.SetLogger(funcr.New(func(_, line string) {
		line, _, _ = strings.Cut(line, ` "requestID"`)
		lines = append(lines, line)
	}, funcr.Options{}))
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Rates{})
		s.records.receive = errors.New("conflict")
		good := s.broughtKey.token(t, claimsFor("work-1", podUID))
		for range 25 {
			if w := s.post("work-1", good, someone); w.Code != http.StatusServiceUnavailable {
				t.Errorf("got %d", w.Code)
			}
			time.Sleep(time.Second)
		}
	})
	line := `"msg"="An artifact wasn't taken" "error"="conflict" "pod"="work-1" "kind"="canary" "target"="target:t1"`
	if diff := cmp.Diff([]string{line, line, line}, lines); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}
