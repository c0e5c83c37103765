package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/test/fleet"
	"cellcast.io/cellcast/test/issuer"
)

// post sends a body to the direct door as curl would.
func post(t *testing.T, path, bearer string, body []byte) (int, string) {
	t.Helper()
	return postTo(t, hub.Hub.Server.URL, path, bearer, body)
}

// postTo posts to one replica.
func postTo(t *testing.T, url, path, bearer string, body []byte) (int, string) {
	t.Helper()
	config := hub.Direct(bearer)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

const placementsPath = "/apis/cellcast.io/v1alpha1/placements"

var question = []byte(`{"apiVersion":"cellcast.io/v1alpha1","kind":"Placement","spec":{"workload":"payments/api"}}`)

func TestATokenThatIsNotGoodIsNotBelieved(t *testing.T) {
	require(t)
	repository := unique(t)
	policy(t, repository, nil)
	other, err := issuer.Start(issuer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	run := issuer.Run{Repository: "acme/x", RepositoryID: repository, Ref: "refs/heads/main", Audience: fleet.Audience}
	in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	tests := map[string]struct {
		by      *issuer.Issuer
		signing issuer.Signing
		claims  map[string]any
		want    int
	}{
		"a good token is":                            {by: hub.CI, want: http.StatusCreated},
		"unsigned":                                   {by: hub.CI, signing: issuer.Signing{Unsigned: true}, want: 401},
		"alg none":                                   {by: hub.CI, signing: issuer.Signing{Alg: issuer.None}, want: 401},
		"a public key as a shared secret":            {by: hub.CI, signing: issuer.Signing{Alg: issuer.HS256}, want: 401},
		"a key that the issuer doesn't publish":      {by: hub.CI, signing: issuer.Signing{Key: issuer.Unpublished}, want: 401},
		"another audience":                           {by: hub.CI, claims: map[string]any{"aud": "somebody-else"}, want: 401},
		"expired":                                    {by: hub.CI, claims: map[string]any{"exp": in(-time.Minute)}, want: 401},
		"no expiry":                                  {by: hub.CI, claims: map[string]any{"exp": nil}, want: 401},
		"valid only from tomorrow":                   {by: hub.CI, claims: map[string]any{"nbf": in(24 * time.Hour), "exp": in(25 * time.Hour)}, want: 401},
		"issued in the future":                       {by: hub.CI, claims: map[string]any{"iat": in(time.Hour), "exp": in(2 * time.Hour)}, want: 401},
		"good for a year":                            {by: hub.CI, claims: map[string]any{"exp": in(365 * 24 * time.Hour)}, want: 401},
		"an issuer that isn't registered":            {by: other, want: 401},
		"a subject that would be system:masters":     {by: hub.CI, claims: map[string]any{"sub": "system:masters"}, want: 401},
		"a group of the hub's own":                   {by: hub.CI, claims: map[string]any{"groups": []string{"system:masters"}}, want: 401},
		"a group of every pipeline's":                {by: hub.CI, claims: map[string]any{"groups": []string{"cellcast.io:pipelines"}}, want: 401},
		"a group in the shape of another pipeline's": {by: hub.CI, claims: map[string]any{"groups": []string{"pipeline:https://other.example#admins"}}, want: http.StatusCreated},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			claims := issuer.CIClaims(run)
			for name, value := range tt.claims {
				claims[name] = value
			}
			signed, err := tt.by.Sign(claims, tt.signing)
			if err != nil {
				t.Fatal(err)
			}
			code, answer := post(t, placementsPath+"?dryRun=All", signed, question)
			if code != tt.want {
				t.Errorf("got %d, want %d: %s", code, tt.want, answer)
			}
			if strings.Contains(answer, signed) || strings.Contains(answer, strings.Split(signed, ".")[1]) {
				t.Error("the answer repeats the token")
			}
		})
	}
	if got := other.Fetches(); got != (issuer.Fetches{}) {
		t.Errorf("an issuer that isn't registered was asked: %+v", got)
	}
}

// A group in the shape of another pipeline's stays this issuer's: the policy of
// the other group must not match.
func TestAMappedGroupCarriesItsIssuer(t *testing.T) {
	require(t)
	repository := unique(t)
	create(t, registryv1alpha1.PlacementPolicySpec{
		Subjects:        []registryv1alpha1.PolicySubject{{Expression: `"pipeline:https://other.example#admins" in groups`}},
		ClusterSelector: metav1.LabelSelector{},
		Credential:      registryv1alpha1.CredentialScope{Namespace: "payments", ServiceAccountName: "deployer"},
	})
	signed, err := hub.Token(repository, map[string]any{"groups": []string{"pipeline:https://other.example#admins", "admins"}})
	if err != nil {
		t.Fatal(err)
	}
	code, answer := post(t, placementsPath+"?dryRun=All", signed, question)
	if code != http.StatusForbidden || !strings.Contains(answer, "NoPolicy") {
		t.Errorf("got %d: %s", code, answer)
	}
}

func TestTenThousandJunkTokensCostNoKeyFetchAndNoTokenReview(t *testing.T) {
	require(t)
	before, reviews := hub.CI.Fetches(), tokenReviews(t)
	unknownKey, err := hub.CI.Sign(issuer.CIClaims(issuer.Run{RepositoryID: "1", Audience: fleet.Audience}), issuer.Signing{Key: issuer.Unpublished})
	if err != nil {
		t.Fatal(err)
	}
	config := hub.Direct("")
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	const total, workers = 10_000, 8
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	began := time.Now()
	var sent atomic.Int64
	senders, ctx := errgroup.WithContext(ctx)
	for range workers {
		senders.Go(func() error {
			for i := sent.Add(1); i <= total; i = sent.Add(1) {
				bearer := fmt.Sprintf("junk-%d", i)
				if i%2 == 0 {
					bearer = unknownKey
				}
				if err := unauthorized(ctx, client, config.Host+placementsPath, bearer); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := senders.Wait(); err != nil {
		t.Fatal(err)
	}
	elapsed := time.Since(began)
	after := hub.CI.Fetches()
	// One fetch per cooldown of ten seconds, begun ones included.
	if most := int(elapsed/(10*time.Second)) + 2; after.Keys-before.Keys > most {
		t.Errorf("%d key fetches in %s, at most %d are due", after.Keys-before.Keys, elapsed, most)
	}
	if now := tokenReviews(t); now != reviews {
		t.Errorf("the hub's API server was asked for %d TokenReviews", now-reviews)
	}
	t.Logf("10,000 junk tokens in %s: %d key fetches", elapsed.Round(time.Millisecond), after.Keys-before.Keys)
}

func unauthorized(ctx context.Context, client *http.Client, url, bearer string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(question))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("got %s, want 401", response.Status)
	}
	return nil
}

func TestKeyRotationAndAnIssuerThatIsAway(t *testing.T) {
	require(t)
	repository := unique(t)
	policy(t, repository, nil)
	claims := issuer.CIClaims(issuer.Run{RepositoryID: repository, Ref: "refs/heads/main", Audience: fleet.Audience})
	status := func(by issuer.KeyChoice) int {
		signed, err := hub.CI.Sign(claims, issuer.Signing{Key: by})
		if err != nil {
			t.Fatal(err)
		}
		code, _ := post(t, placementsPath+"?dryRun=All", signed, question)
		return code
	}
	if code := status(issuer.Current); code != http.StatusCreated {
		t.Fatalf("got %d before the rotation", code)
	}
	time.Sleep(11 * time.Second) // the cooldown of the keys, which other tests may have begun
	if err := hub.CI.Rotate(true); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if code := status(issuer.Current); code != http.StatusCreated {
			t.Fatalf("a token of the new key gets %d", code)
		}
	}
	if code := status(issuer.Previous); code != http.StatusCreated {
		t.Errorf("a token of the key before gets %d", code)
	}
	hub.CI.SetReachable(false)
	defer hub.CI.SetReachable(true)
	if code := status(issuer.Current); code != http.StatusCreated {
		t.Errorf("with the issuer away, a known key gets %d", code)
	}
	if code := status(issuer.Unpublished); code != http.StatusUnauthorized {
		t.Errorf("with the issuer away, an unknown key gets %d", code)
	}
}

func TestARequestThatIsNotWellFormedIsRefused(t *testing.T) {
	require(t)
	repository := unique(t)
	policy(t, repository, nil)
	signed, err := hub.Token(repository, nil)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		body string
		want int
		text string
	}{
		"ten megabytes":                        {`{"apiVersion":"cellcast.io/v1alpha1","kind":"Placement","spec":{"workload":"` + strings.Repeat("a", 10<<20) + `"}}`, http.StatusRequestEntityTooLarge, ""},
		"a misspelt field":                     {`{"apiVersion":"cellcast.io/v1alpha1","kind":"Placement","spec":{"workload":"payments/api","drak":true}}`, http.StatusBadRequest, "spec.drak"},
		"a field given twice":                  {`{"apiVersion":"cellcast.io/v1alpha1","kind":"Placement","spec":{"workload":"payments/api","dark":true,"dark":false}}`, http.StatusBadRequest, "duplicate field"},
		"no JSON":                              {`{`, http.StatusBadRequest, ""},
		"another kind":                         {`{"apiVersion":"cellcast.io/v1alpha1","kind":"CellToken","spec":{"workload":"a"}}`, http.StatusBadRequest, ""},
		"a quantity that takes hours to round": {`{"apiVersion":"cellcast.io/v1alpha1","kind":"Placement","spec":{"workload":"payments/api","resources":{"cpu":"1e-2000000000"}}}`, http.StatusBadRequest, "out of range"},
		"a quantity that is NaN":               {`{"apiVersion":"cellcast.io/v1alpha1","kind":"Placement","spec":{"workload":"payments/api","resources":{"cpu":"NaN"}}}`, http.StatusBadRequest, ""},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			code, answer := post(t, placementsPath+"?dryRun=All", signed, []byte(tt.body))
			if code != tt.want || !strings.Contains(answer, tt.text) {
				t.Errorf("got %d %.300s", code, answer)
			}
			var status metav1.Status
			if err := json.Unmarshal([]byte(answer), &status); err != nil || status.Kind != "Status" {
				t.Errorf("the answer is no Status: %.300s", answer)
			}
		})
	}
}

func TestAQueryThatCannotBeReadIsNotDropped(t *testing.T) {
	require(t)
	repository := unique(t)
	policy(t, repository, nil)
	signed, err := hub.Token(repository, nil)
	if err != nil {
		t.Fatal(err)
	}
	if code, answer := post(t, placementsPath+"?dryRun=All;x=1", signed, question); code != http.StatusBadRequest {
		t.Errorf("got %d: a request for a dry run minted: %.200s", code, answer)
	}
}
