package mint_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"cellcast.io/cellcast/pkg/cell/celltest"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/mint"
	"cellcast.io/cellcast/pkg/refusal"
)

var noon = time.Date(2027, 3, 4, 12, 0, 0, 0, time.UTC)

var scope = mint.Scope{Namespace: "payments", ServiceAccountName: "deployer"}

// fra is the cell fra-1. It issues what it's asked for, unless err says that
// the call fails, or tamper changes the answer.
type fra struct {
	noSecrets
	sign   *celltest.Cell
	err    error
	tamper func(*celltest.Claims, *authenticationv1.TokenRequestStatus)
	asked  []authenticationv1.TokenRequestSpec
}

func newFra(t *testing.T) *fra {
	return &fra{sign: celltest.New(t, "fra-1", celltest.NewHub(nil), nil)}
}

func (f *fra) Name() string { return "fra-1" }

func (f *fra) CreateToken(_ context.Context, namespace, name string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	f.asked = append(f.asked, request.Spec)
	if f.err != nil {
		return nil, f.err
	}
	ends := noon.Add(time.Duration(*request.Spec.ExpirationSeconds) * time.Second)
	claims := celltest.Claims{
		Issuer: celltest.Issuer, Subject: "system:serviceaccount:" + namespace + ":" + name,
		Audience: request.Spec.Audiences, ID: "5b1cf0a8-0d5d-4bfa-9a5e-0f2d7a4b9c11", Expiry: ends.Unix(),
	}
	status := authenticationv1.TokenRequestStatus{ExpirationTimestamp: metav1.NewTime(ends)}
	if f.tamper != nil {
		f.tamper(&claims, &status)
	}
	if status.Token == "" {
		status.Token = f.sign.Sign(claims)
	}
	return &authenticationv1.TokenRequest{Status: status}, nil
}

func TestMintReturnsTheTokenAndWhatMayBeToldOfIt(t *testing.T) {
	cell := newFra(t)
	ask := mint.Ask{Scope: scope, TTL: 15*time.Minute + 300*time.Millisecond, Ceiling: time.Hour}
	ask.Audiences = []string{"vault"}
	got, err := mint.Mint(t.Context(), noon, cell, ask)
	if err != nil {
		t.Fatal(err)
	}
	want := mint.Credential{
		Scope: ask.Scope, Token: got.Token, Expiration: noon.Add(15 * time.Minute),
		JTI:    "5b1cf0a8-0d5d-4bfa-9a5e-0f2d7a4b9c11",
		SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(got.Token.Reveal()))),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the credential differs (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(got.Token.Reveal(), "eyJ") {
		t.Error("there is no token in it")
	}
	asked := []authenticationv1.TokenRequestSpec{{Audiences: []string{"vault"}, ExpirationSeconds: ptr.To[int64](900)}}
	if diff := cmp.Diff(asked, cell.asked); diff != "" {
		t.Errorf("the cell was asked otherwise (-want +got):\n%s", diff)
	}
	if printed := fmt.Sprintf("%+v", got); strings.Contains(printed, got.Token.Reveal()) {
		t.Errorf("a printed credential shows its token: %s", printed)
	}
}

func TestMintAcceptsWhatIsWithinItsBounds(t *testing.T) {
	for sentence, tt := range map[string]struct {
		tamper func(*celltest.Claims, *authenticationv1.TokenRequestStatus)
		ends   time.Time
		jti    string
	}{
		"a token that ends sooner than asked": {func(c *celltest.Claims, s *authenticationv1.TokenRequestStatus) {
			c.Expiry, s.ExpirationTimestamp = noon.Add(10*time.Minute).Unix(), metav1.NewTime(noon.Add(10*time.Minute))
		}, noon.Add(10 * time.Minute), "5b1cf0a8-0d5d-4bfa-9a5e-0f2d7a4b9c11"},
		"a clock that is a minute ahead": {func(c *celltest.Claims, s *authenticationv1.TokenRequestStatus) {
			c.Expiry, s.ExpirationTimestamp = noon.Add(16*time.Minute).Unix(), metav1.NewTime(noon.Add(16*time.Minute))
		}, noon.Add(16 * time.Minute), "5b1cf0a8-0d5d-4bfa-9a5e-0f2d7a4b9c11"},
		"an exp that is a second after the status's, as API servers round": {func(c *celltest.Claims, _ *authenticationv1.TokenRequestStatus) {
			c.Expiry++
		}, noon.Add(15 * time.Minute), "5b1cf0a8-0d5d-4bfa-9a5e-0f2d7a4b9c11"},
		"an exp that is before the status's, and counts": {func(c *celltest.Claims, _ *authenticationv1.TokenRequestStatus) {
			c.Expiry = noon.Add(5 * time.Minute).Unix()
		}, noon.Add(5 * time.Minute), "5b1cf0a8-0d5d-4bfa-9a5e-0f2d7a4b9c11"},
		"a token without an id": {func(c *celltest.Claims, _ *authenticationv1.TokenRequestStatus) {
			c.ID = ""
		}, noon.Add(15 * time.Minute), ""},
		"an id that isn't one, left out": {func(c *celltest.Claims, _ *authenticationv1.TokenRequestStatus) {
			c.ID = "\n{\"event\":\"mint\"}"
		}, noon.Add(15 * time.Minute), ""},
		"an id that is too long, left out": {func(c *celltest.Claims, _ *authenticationv1.TokenRequestStatus) {
			c.ID = strings.Repeat("a", 129)
		}, noon.Add(15 * time.Minute), ""},
		"an audience of the cell's own where none was asked for": {func(c *celltest.Claims, _ *authenticationv1.TokenRequestStatus) {
			c.Audience = []string{celltest.Issuer}
		}, noon.Add(15 * time.Minute), "5b1cf0a8-0d5d-4bfa-9a5e-0f2d7a4b9c11"},
	} {
		t.Run(sentence, func(t *testing.T) {
			cell := newFra(t)
			cell.tamper = tt.tamper
			got, err := mint.Mint(t.Context(), noon, cell, mint.Ask{Scope: scope, TTL: 15 * time.Minute, Ceiling: 15 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			if !got.Expiration.Equal(tt.ends) || got.JTI != tt.jti || got.Token.IsZero() {
				t.Errorf("ends %s with id %q; want %s and %q", got.Expiration, got.JTI, tt.ends, tt.jti)
			}
		})
	}
}

func TestMintThrowsAwayWhatIsOutOfBounds(t *testing.T) {
	for sentence, tt := range map[string]struct {
		tamper func(*celltest.Claims, *authenticationv1.TokenRequestStatus)
		want   string
	}{
		"a status that is past the ceiling": {func(_ *celltest.Claims, s *authenticationv1.TokenRequestStatus) {
			s.ExpirationTimestamp = metav1.NewTime(noon.Add(16*time.Minute + time.Second))
		}, "MintFailed: cell fra-1 issued a token that ends at 2027-03-04T12:16:01Z, past the ceiling of 15m0s; it was thrown away: check the cell's clock and the token settings of its API server"},
		"a token that lives on past its status": {func(c *celltest.Claims, _ *authenticationv1.TokenRequestStatus) {
			c.Expiry = noon.AddDate(1, 0, 0).Unix()
		}, "MintFailed: cell fra-1 issued a token that ends at 2028-03-04T12:00:00Z, past the ceiling of 15m0s; it was thrown away: check the cell's clock and the token settings of its API server"},
		"a token without exp": {func(c *celltest.Claims, _ *authenticationv1.TokenRequestStatus) {
			c.Expiry = 0
		}, "MintFailed: cell fra-1 issued a token without saying when it ends; it was thrown away"},
		"a status without an expiration": {func(_ *celltest.Claims, s *authenticationv1.TokenRequestStatus) {
			s.ExpirationTimestamp = metav1.Time{}
		}, "MintFailed: cell fra-1 issued a token without saying when it ends; it was thrown away"},
		"a token that has ended": {func(c *celltest.Claims, _ *authenticationv1.TokenRequestStatus) {
			c.Expiry = noon.Unix()
		}, "MintFailed: cell fra-1 issued a token that ended at 2027-03-04T12:00:00Z already: check the cell's clock"},
		"a token of another ServiceAccount": {func(c *celltest.Claims, _ *authenticationv1.TokenRequestStatus) {
			c.Subject = "system:serviceaccount:kube-system:admin"
		}, "MintFailed: cell fra-1 issued a token that isn't for payments/deployer; it was thrown away"},
		"a token for one audience more": {func(c *celltest.Claims, _ *authenticationv1.TokenRequestStatus) {
			c.Audience = []string{"vault", celltest.Issuer}
		}, "MintFailed: cell fra-1 issued a token for payments/deployer that is good for more than was asked; it was thrown away"},
		"a token for no audience": {func(c *celltest.Claims, _ *authenticationv1.TokenRequestStatus) {
			c.Audience = nil
		}, "MintFailed: cell fra-1 issued a token for payments/deployer that is good for more than was asked; it was thrown away"},
		"something that isn't a JWT": {func(_ *celltest.Claims, s *authenticationv1.TokenRequestStatus) {
			s.Token = "hunter2"
		}, "MintFailed: cell fra-1 issued a token that the hub can't read"},
		"an unsigned JWT": {func(_ *celltest.Claims, s *authenticationv1.TokenRequestStatus) {
			s.Token = "eyJhbGciOiJub25lIn0.e30."
		}, "MintFailed: cell fra-1 issued a token that the hub can't read"},
	} {
		t.Run(sentence, func(t *testing.T) {
			cell := newFra(t)
			cell.tamper = tt.tamper
			ask := mint.Ask{Scope: scope, TTL: 15 * time.Minute, Ceiling: 15 * time.Minute}
			ask.Audiences = []string{"vault"}
			got, err := mint.Mint(t.Context(), noon, cell, ask)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if diff := cmp.Diff(mint.Credential{}, got); diff != "" {
				t.Errorf("a refusal came with a credential: %s", diff)
			}
		})
	}
}

func TestAnAnswerWithoutATokenIsRefused(t *testing.T) {
	_, err := mint.Mint(t.Context(), noon, empty{}, mint.Ask{Scope: scope, TTL: 15 * time.Minute, Ceiling: time.Hour})
	if err == nil || err.Error() != "MintFailed: cell fra-1 answered without a token" {
		t.Errorf("got %v", err)
	}
}

type empty struct{ noSecrets }

func (empty) Name() string { return "fra-1" }
func (empty) CreateToken(context.Context, string, string, *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	return &authenticationv1.TokenRequest{}, nil
}

func TestAFailedCallBecomesARefusalThatAStrangerMayRead(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.7:6443: the cell's own words")
	for kind, want := range map[failure.Kind]string{
		failure.Unreachable:     "MintUnavailable: cell fra-1 can't be reached",
		failure.Unavailable:     "MintUnavailable: cell fra-1 can't issue a token now",
		failure.NoHubToken:      "MintUnavailable: the hub can't get its own token for cell fra-1 now",
		failure.Interrupted:     "MintUnavailable: cell fra-1 didn't answer before the request ended",
		failure.Unauthenticated: "MintFailed: cell fra-1 doesn't trust the hub: check the TrustEstablished condition of its Cluster and the AuthenticationConfiguration of its API server",
		failure.Forbidden:       "MintFailed: the hub may not create serviceaccounts/token for payments/deployer on cell fra-1: apply the Role that `cellcast register cell fra-1 --mint payments/deployer` prints",
		failure.NotFound:        "MintFailed: there is no ServiceAccount payments/deployer on cell fra-1: create it, or correct spec.credential of the policy",
		failure.Rejected:        "MintFailed: cell fra-1 refused a token of 15m0s for payments/deployer: check its admission policies on serviceaccounts/token and the limits of its API server",
		failure.Unexpected:      "MintFailed: cell fra-1 answered with something that isn't understood",
		"Invented":              "MintFailed: cell fra-1 gave no token",
	} {
		t.Run(string(kind), func(t *testing.T) {
			cell := newFra(t)
			cell.err = &failure.Error{Kind: kind, Cell: "fra-1", RetryAfter: 9 * time.Second, Err: cause}
			got, err := mint.Mint(t.Context(), noon, cell, mint.Ask{Scope: scope, TTL: 15 * time.Minute, Ceiling: time.Hour})
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if !errors.Is(err, cause) {
				t.Error("the cause is lost to the log")
			}
			r := refusal.As(err)
			if r == nil {
				t.Fatalf("%v is no refusal", err)
			}
			if (r.Code == refusal.MintUnavailable) != kind.MayClear() {
				t.Errorf("%s became %s", kind, r.Code)
			}
			if r.Code == refusal.MintUnavailable && r.RetryAfter != 9*time.Second {
				t.Errorf("retry after %s, want 9s", r.RetryAfter)
			}
			if diff := cmp.Diff(mint.Credential{}, got); diff != "" {
				t.Errorf("a refusal came with a credential: %s", diff)
			}
		})
	}
}

func TestWhatSpeaksForItselfIsPassedOn(t *testing.T) {
	cell := newFra(t)
	own := refusal.New(refusal.TargetNotReady, "the API of target team-a/gpu refuses the registered credential")
	cell.err = own
	got, err := mint.Mint(t.Context(), noon, cell, mint.Ask{Scope: scope, TTL: 15 * time.Minute, Ceiling: time.Hour})
	if refusal.As(err) != own {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(mint.Credential{}, got); diff != "" {
		t.Errorf("a refusal came with a credential: %s", diff)
	}
}

func TestMintAsksForNothingThatTheRulesForbid(t *testing.T) {
	for sentence, tt := range map[string]struct {
		ask  mint.Ask
		want string
	}{
		"no ceiling":              {mint.Ask{Scope: scope, TTL: 10 * time.Minute}, "minting on cell fra-1: a life of 10m0s is over the ceiling of 0s"},
		"a TTL over the ceiling":  {mint.Ask{Scope: scope, TTL: 11 * time.Minute, Ceiling: 10 * time.Minute}, "minting on cell fra-1: a life of 11m0s is over the ceiling of 10m0s"},
		"a TTL under the floor":   {mint.Ask{Scope: scope, TTL: 9 * time.Minute, Ceiling: time.Hour}, "minting on cell fra-1: a life of 9m0s is under the 10m0s that Kubernetes issues a token for"},
		"no ServiceAccount":       {mint.Ask{Scope: mint.Scope{Namespace: "payments"}, TTL: 10 * time.Minute, Ceiling: time.Hour}, "minting on cell fra-1: the scope names no ServiceAccount"},
		"no namespace":            {mint.Ask{Scope: mint.Scope{ServiceAccountName: "deployer"}, TTL: 10 * time.Minute, Ceiling: time.Hour}, "minting on cell fra-1: the scope names no ServiceAccount"},
		"an ask that is all zero": {mint.Ask{}, "minting on cell fra-1: the scope names no ServiceAccount"},
	} {
		t.Run(sentence, func(t *testing.T) {
			cell := newFra(t)
			_, err := mint.Mint(t.Context(), noon, cell, tt.ask)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if refusal.As(err) != nil {
				t.Error("a fault of the hub's must not read as a refusal")
			}
			if len(cell.asked) != 0 {
				t.Error("the cell was asked")
			}
		})
	}
}

func TestNoErrorQuotesAToken(t *testing.T) {
	cell := newFra(t)
	cell.tamper = func(_ *celltest.Claims, s *authenticationv1.TokenRequestStatus) { s.Token = "hunter2.hunter2.hunter2" }
	_, err := mint.Mint(t.Context(), noon, cell, mint.Ask{Scope: scope, TTL: 15 * time.Minute, Ceiling: time.Hour})
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the token is in %q", err)
		}
	}
}

// noSecrets is the part of a cell that only revocable credentials ask for.
type noSecrets struct{}

func (noSecrets) CreateSecret(context.Context, *corev1.Secret) (*corev1.Secret, error) {
	return nil, errors.New("the cell makes no Secrets")
}

func (noSecrets) DeleteSecret(context.Context, string, string) error {
	return errors.New("the cell has no Secrets")
}
