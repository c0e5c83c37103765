package cell_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/ptr"

	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/cell/celltest"
)

const audience = "cellcast:cell:fra-1"

var errHubAway = errors.New("connection refused")

func newTokens(t *testing.T, hub *celltest.Hub) *cell.Tokens {
	t.Helper()
	tokens, err := cell.NewTokens(hub, cell.TokenOptions{ServiceAccount: "cellcast-hub"})
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func token(t *testing.T, tokens *cell.Tokens, audience string) string {
	t.Helper()
	value, err := tokens.Token(t.Context(), audience)
	if err != nil {
		t.Fatalf("getting a token for %s: %v", audience, err)
	}
	return value.Reveal()
}

func TestTokensAreAskedForPerAudienceAndBoundToThePod(t *testing.T) {
	hub := celltest.NewHub(nil)
	tokens, err := cell.NewTokens(hub, cell.TokenOptions{
		ServiceAccount: "cellcast-hub", PodName: "hub-0", PodUID: "2f1b", Life: 20 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	first, second, again := token(t, tokens, "cellcast:cell:a"), token(t, tokens, "cellcast:cell:b"), token(t, tokens, "cellcast:cell:a")
	if first == second || first != again {
		t.Errorf("got %s, %s and %s; want one per audience", first, second, again)
	}
	pod := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "hub-0", UID: "2f1b"}
	want := []authenticationv1.TokenRequestSpec{
		{Audiences: []string{"cellcast:cell:a"}, ExpirationSeconds: ptr.To[int64](1200), BoundObjectRef: pod},
		{Audiences: []string{"cellcast:cell:b"}, ExpirationSeconds: ptr.To[int64](1200), BoundObjectRef: pod},
	}
	if diff := cmp.Diff(want, hub.Requests()); diff != "" {
		t.Errorf("requests differ (-want +got):\n%s", diff)
	}
}

func TestATokenIsRenewedBetween70And80PercentOfItsLifeWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := celltest.NewHub(nil)
		tokens := newTokens(t, hub)
		if got := token(t, tokens, audience); got != "hub-token-1" {
			t.Fatalf("got %s", got)
		}
		time.Sleep(30*time.Minute*7/10 - time.Second)
		token(t, tokens, audience)
		synctest.Wait()
		if n := len(hub.Requests()); n != 1 {
			t.Fatalf("%d requests before 70 percent of its life, want 1", n)
		}
		time.Sleep(30*time.Minute/10 + 2*time.Second)
		if got := token(t, tokens, audience); got != "hub-token-1" {
			t.Errorf("got %s, want the old one at once while the new one is asked for", got)
		}
		synctest.Wait()
		if got := token(t, tokens, audience); got != "hub-token-2" {
			t.Errorf("got %s, want the new one", got)
		}
	})
}

func TestATokensLifeIsWhatTheHubsAPIServerSaysAndNotWhatWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := celltest.NewHub(nil)
		hub.ShortenTo(10 * time.Minute)
		tokens := newTokens(t, hub)
		token(t, tokens, audience)
		time.Sleep(10 * time.Minute)
		if got := token(t, tokens, audience); got != "hub-token-2" {
			t.Errorf("got %s, which has expired", got)
		}
	})
}

func TestAFailedRenewalKeepsTheTokenThatIsStillGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := celltest.NewHub(nil)
		tokens := newTokens(t, hub)
		token(t, tokens, audience)
		hub.Fail(errHubAway)
		for range 5 {
			time.Sleep(29 * time.Minute / 5)
			if got := token(t, tokens, audience); got != "hub-token-1" {
				t.Errorf("got %s", got)
			}
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		_, err := tokens.Token(t.Context(), audience)
		want := "asking the hub's API server for a token of ServiceAccount cellcast-hub for audience cellcast:cell:fra-1: connection refused"
		if err == nil || err.Error() != want {
			t.Errorf("once it has expired: %v, want %s", err, want)
		}
		hub.Fail(nil)
		time.Sleep(3 * time.Second)
		if got := token(t, tokens, audience); got != "hub-token-2" {
			t.Errorf("once the hub's API server is back: %s", got)
		}
	})
}

func TestAFailingHubIsNotAskedAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &counting{Hub: celltest.NewHub(nil)}
		hub.Fail(errHubAway)
		tokens, err := cell.NewTokens(hub, cell.TokenOptions{ServiceAccount: "cellcast-hub"})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if _, err := tokens.Token(t.Context(), audience); !errors.Is(err, errHubAway) {
				t.Fatalf("got %v", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if hub.asked != 1 {
			t.Errorf("asked %d times within a second, want once", hub.asked)
		}
	})
}

func TestManyWhoWantOneTokenCauseOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &counting{Hub: celltest.NewHub(nil), took: time.Second}
		tokens, err := cell.NewTokens(hub, cell.TokenOptions{ServiceAccount: "cellcast-hub"})
		if err != nil {
			t.Fatal(err)
		}
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				if got := token(t, tokens, audience); got != "hub-token-1" {
					t.Errorf("got %s", got)
				}
			})
		}
		callers.Wait()
		if hub.asked != 1 {
			t.Errorf("asked %d times, want once", hub.asked)
		}
	})
}

func TestACallerThatGoesAwayDoesntEndTheRequestOthersWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &counting{Hub: celltest.NewHub(nil), took: time.Second}
		tokens, err := cell.NewTokens(hub, cell.TokenOptions{ServiceAccount: "cellcast-hub"})
		if err != nil {
			t.Fatal(err)
		}
		hasty, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := tokens.Token(hasty, audience); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if got := token(t, tokens, audience); got != "hub-token-1" || hub.asked != 1 {
			t.Errorf("got %s after %d requests", got, hub.asked)
		}
	})
}

func TestARequestForATokenEndsAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens, err := cell.NewTokens(&counting{Hub: celltest.NewHub(nil), took: time.Hour}, cell.TokenOptions{ServiceAccount: "cellcast-hub"})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := tokens.Token(t.Context(), audience); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestARejectedTokenIsDroppedUnlessItIsYoung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := newTokens(t, celltest.NewHub(nil))
		first, err := tokens.Token(t.Context(), audience)
		if err != nil {
			t.Fatal(err)
		}
		if tokens.Reject(audience, first) {
			t.Error("a token that is new was dropped: a cell without trust would cause a request per call")
		}
		time.Sleep(time.Minute)
		if !tokens.Reject(audience, first) {
			t.Error("a token that is a minute old was kept")
		}
		if !tokens.Reject(audience, first) {
			t.Error("a token that was dropped already isn't replaced")
		}
		if got := token(t, tokens, audience); got != "hub-token-2" {
			t.Errorf("got %s", got)
		}
		if !tokens.Reject(audience, first) {
			t.Error("a late rejection of the old token isn't worth another try")
		}
		if got := token(t, tokens, audience); got != "hub-token-2" {
			t.Errorf("a late rejection of the old token cost the new one: got %s", got)
		}
	})
}

func TestAnswersThatAreNoTokenAreFailures(t *testing.T) {
	for sentence, tt := range map[string]struct {
		status authenticationv1.TokenRequestStatus
		want   string
	}{
		"no token":                      {authenticationv1.TokenRequestStatus{}, "the answer has no token"},
		"a token without an expiration": {authenticationv1.TokenRequestStatus{Token: "secret-1"}, "the answer's token ends at 0001-01-01T00:00:00Z already"},
	} {
		t.Run(sentence, func(t *testing.T) {
			tokens, err := cell.NewTokens(&counting{Hub: celltest.NewHub(nil), canned: &tt.status}, cell.TokenOptions{ServiceAccount: "cellcast-hub"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = tokens.Token(t.Context(), audience)
			if err == nil || !strings.HasSuffix(err.Error(), ": "+tt.want) || strings.Contains(err.Error(), "secret-1") {
				t.Errorf("got %v, want …%s", err, tt.want)
			}
		})
	}
}

func TestNewTokensRefuses(t *testing.T) {
	for sentence, tt := range map[string]struct {
		options cell.TokenOptions
		want    string
	}{
		"no ServiceAccount":        {cell.TokenOptions{}, "the hub's own tokens need the name of its ServiceAccount"},
		"a pod without a UID":      {cell.TokenOptions{ServiceAccount: "hub", PodName: "hub-0"}, "the hub's own tokens are bound to a pod by its name and its UID: give both or neither"},
		"a UID without a pod":      {cell.TokenOptions{ServiceAccount: "hub", PodUID: "2f1b"}, "the hub's own tokens are bound to a pod by its name and its UID: give both or neither"},
		"a life under ten minutes": {cell.TokenOptions{ServiceAccount: "hub", Life: 599 * time.Second}, "the hub's own tokens can't live 9m59s: Kubernetes issues none for less than 10m0s"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := cell.NewTokens(celltest.NewHub(nil), tt.options); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
