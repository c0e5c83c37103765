package agent

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	client "cellcast.io/cellcast/generated/clientset/versioned/typed/cellcast/v1alpha1"
)

// served is a fake hub behind TLS, and the client side that knows it.
type served struct {
	*fakeHub
	*hub
	server *httptest.Server
}

func serve(t *testing.T) *served {
	fake := &fakeHub{cell: "oslo", token: "first"}
	server := httptest.NewUnstartedServer(fake)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	s := &served{fakeHub: fake, server: server, hub: &hub{
		url:       server.URL,
		caFile:    filepath.Join(t.TempDir(), "ca.crt"),
		tokenFile: filepath.Join(t.TempDir(), "token"),
	}}
	s.writeCA(t, server)
	s.writeToken(t, "first\n")
	t.Cleanup(func() {
		if s.transport != nil {
			s.transport.CloseIdleConnections()
		}
	})
	return s
}

func (s *served) writeCA(t *testing.T, server *httptest.Server) {
	write(t, s.caFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
}

func (s *served) writeToken(t *testing.T, token string) { write(t, s.tokenFile, token) }

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// send sends the n-th report.
func (s *served) send(t *testing.T, n int64) error {
	return s.hub.report(t.Context(), "oslo", &v1alpha1.CellCapacity{
		ObjectMeta: metav1.ObjectMeta{Name: "oslo"},
		Spec: v1alpha1.CellCapacitySpec{
			Sequence:    n,
			ObservedAt:  metav1.NewMicroTime(time.Unix(1_700_000_000, 123_000)),
			Nodes:       1,
			Allocatable: v1alpha1.ResourceList{"cpu": resource.MustParse("4"), "nvidia.com/gpu": resource.MustParse("8")},
		},
	})
}

func TestHubTakesWhatWasSent(t *testing.T) {
	s := serve(t)
	if err := s.send(t, 7); err != nil {
		t.Fatal(err)
	}
	want := []v1alpha1.CellCapacity{{
		TypeMeta:   metav1.TypeMeta{Kind: "CellCapacity", APIVersion: "cellcast.io/v1alpha1"},
		ObjectMeta: metav1.ObjectMeta{Name: "oslo"},
		Spec: v1alpha1.CellCapacitySpec{
			Sequence:    7,
			ObservedAt:  metav1.NewMicroTime(time.Unix(1_700_000_000, 123_000)),
			Nodes:       1,
			Allocatable: v1alpha1.ResourceList{"cpu": resource.MustParse("4"), "nvidia.com/gpu": resource.MustParse("8")},
		},
	}}
	if diff := cmp.Diff(want, s.taken()); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cellcast-agent"}, s.userAgents); diff != "" {
		t.Errorf("user agents (-want +got):\n%s", diff)
	}
}

func TestHubSeesARotatedTokenAtOnce(t *testing.T) {
	s := serve(t)
	if err := s.send(t, 1); err != nil {
		t.Fatalf("with the first token: %v", err)
	}
	s.setToken("second")
	if err := s.send(t, 2); statusOf(err) != http.StatusUnauthorized {
		t.Fatalf("with a token that is over: %v, want 401", err)
	}
	s.writeToken(t, "second")
	if err := s.send(t, 3); err != nil {
		t.Errorf("with the rotated token: %v", err)
	}
}

func TestHubSeesARotatedCAAtOnce(t *testing.T) {
	s := serve(t)
	if err := s.send(t, 1); err != nil {
		t.Fatalf("with the first CA: %v", err)
	}
	other, err := os.ReadFile("testdata/another-hub.crt")
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.caFile, string(other))
	if err := s.send(t, 2); err == nil || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Fatalf("with the CA of another hub: %v, want an unknown authority", err)
	}
	s.writeCA(t, s.server)
	if err := s.send(t, 3); err != nil {
		t.Errorf("with the CA back: %v", err)
	}
}

func TestHubIsAskedOnceForEachReport(t *testing.T) {
	s := serve(t)
	s.set(answer(http.StatusServiceUnavailable, "warming up", 17))
	err := s.send(t, 1)
	if got := outcomeOf(err); got != failed {
		t.Errorf("outcome %q of %v, want failed", got, err)
	}
	if got := advisedWait(err); got != 17*time.Second {
		t.Errorf("the hub advised to wait %s, want 17s", got)
	}
	if got := len(s.attempted()); got != 1 {
		t.Errorf("the hub was asked %d times, want once", got)
	}
	s.set(nil)
	if err := s.send(t, 2); err != nil {
		t.Errorf("after the hub came back: %v", err)
	}
}

func TestHubErrorsSayWhatTheHubSaid(t *testing.T) {
	s := serve(t)
	s.set(answer(http.StatusBadRequest, "InvalidRequest: spec.nodes: must not be negative", 0))
	err := s.send(t, 1)
	want := "reporting to " + s.url + ": InvalidRequest: spec.nodes: must not be negative"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestHubFollowsNoRedirect(t *testing.T) {
	leaked := make(chan string, 1)
	thief := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leaked <- r.Header.Get("Authorization")
	}))
	defer thief.Close()
	door := httptest.NewTLSServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer door.Close()

	s := serve(t)
	s.url = door.URL // httptest's servers share one certificate
	if err := s.send(t, 1); outcomeOf(err) != failed {
		t.Errorf("a redirect is %q (%v), want failed", outcomeOf(err), err)
	}
	select {
	case token := <-leaked:
		t.Errorf("the server that the redirect named was sent %q", token)
	default:
	}
}

func TestHubErrorsOfFiles(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(s *served)
		want  string
	}{
		"an empty token file":         {func(s *served) { s.writeToken(t, " \n") }, "the reporter's token (--token-file $TOKEN) is empty"},
		"a token file that is gone":   {func(s *served) { os.Remove(s.tokenFile) }, "reading the reporter's token (--token-file): open $TOKEN: no such file or directory"},
		"a CA file that is gone":      {func(s *served) { os.Remove(s.caFile) }, "reading the hub's CA (--hub-ca): open $CA: no such file or directory"},
		"a CA file without PEM in it": {func(s *served) { write(t, s.caFile, "no") }, "the hub's CA (--hub-ca $CA) has no PEM certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			test.spoil(s)
			err := s.send(t, 1)
			want := strings.NewReplacer("$TOKEN", s.tokenFile, "$CA", s.caFile).Replace(test.want)
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("error %v, want one that ends in %q", err, want)
			}
			if outcomeOf(err) != failed {
				t.Errorf("outcome %q, want failed", outcomeOf(err))
			}
			if got := len(s.attempted()); got != 0 {
				t.Errorf("the hub was asked %d times", got)
			}
		})
	}
}

func TestHubIsNotWaitedForLongerThanTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent, err := client.NewForConfigAndClient(&rest.Config{Host: "https://hub.example"}, &http.Client{Transport: silence{}})
		if err != nil {
			t.Fatal(err)
		}
		h := &hub{url: "https://hub.example", client: silent, transport: &http.Transport{}}
		began := time.Now()
		err = h.report(t.Context(), "oslo", &v1alpha1.CellCapacity{})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want a deadline exceeded", err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("gave up after %s, want 10s", took)
		}
	})
}

// silence is a hub that takes a request and never answers.
type silence struct{}

func (silence) RoundTrip(r *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	return nil, r.Context().Err()
}
