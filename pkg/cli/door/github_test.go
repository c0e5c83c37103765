package door

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// runner is GitHub's service that issues tokens.
func runner(t *testing.T, answer http.HandlerFunc) (j job, url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(answer)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	url = server.URL + "/s3cret-path/idtoken?api-version=2.0&audience=theirs"
	return job{
		getenv:    environment(map[string]string{EnvHub: "https://hub.example.com", envGitHubURL: url, envGitHubToken: "s3cret-bearer"}),
		transport: server.Client().Transport,
	}, url
}

func TestTokenOfGitHubActions(t *testing.T) {
	token := jwt(`{"iss":"https://token.actions.githubusercontent.com"}`)
	for name, test := range map[string]struct {
		flags Flags
		env   map[string]string
		want  string
	}{
		"for the hub, by default":               {want: "cellcast.io/hub"},
		"for the audience of the environment":   {env: map[string]string{EnvAudience: "env&x=y"}, want: "env&x=y"},
		"for the audience of a flag, before it": {flags: Flags{Audience: "https://flag.example.com"}, env: map[string]string{EnvAudience: "env"}, want: "https://flag.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked *http.Request
			j, _ := runner(t, func(w http.ResponseWriter, r *http.Request) {
				asked = r
				_, _ = io.WriteString(w, `{"count":1984,"value":"`+token+`"}`)
			})
			rest := j.getenv
			j.getenv = environment(test.env)
			own := j.getenv
			j.getenv = func(key string) string { return first(own(key), rest(key)) }
			door, err := test.flags.open(t.Context(), j)
			if err != nil {
				t.Fatal(err)
			}
			if door.Kind != Direct || door.Config.BearerToken != token || door.TokenSource != "the token of GitHub Actions" ||
				door.Claims.Issuer != "https://token.actions.githubusercontent.com" {
				t.Errorf("kind %s, source %q, issuer %q, the right token: %v", door.Kind, door.TokenSource, door.Claims.Issuer, door.Config.BearerToken == token)
			}
			if got := asked.URL.Query()["audience"]; len(got) != 1 || got[0] != test.want {
				t.Errorf("asked for audience %q, want %q", got, test.want)
			}
			if asked.Method != http.MethodGet || asked.URL.Path != "/s3cret-path/idtoken" || asked.URL.Query().Get("api-version") != "2.0" || asked.Header.Get("Authorization") != "Bearer s3cret-bearer" {
				t.Errorf("asked by %s %s with Authorization %q", asked.Method, asked.URL, asked.Header.Get("Authorization"))
			}
		})
	}
}

func TestGitHubActionsIssuesNone(t *testing.T) {
	answer := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://elsewhere.example.com")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"it refuses":               {answer(403, "s3cret"), "GitHub Actions issued no token: it answered with HTTP 403"},
		"it points elsewhere":      {answer(302, ""), "GitHub Actions issued no token: it answered with HTTP 302"},
		"no JSON":                  {answer(200, "s3cret"), "GitHub Actions issued no token: its answer is no JSON object with a value, or too long"},
		"no value":                 {answer(200, `{"token":"s3cret"}`), "GitHub Actions issued no token: its answer is no JSON object with a value, or too long"},
		"an answer without an end": {answer(200, `{"value":"`+jwt(`{}`)+`","pad":"`+strings.Repeat("s3cret", 6000)+`"}`), "GitHub Actions issued no token: its answer is no JSON object with a value, or too long"},
		"a value that is no token": {answer(200, `{"value":"s3cret"}`), "what GitHub Actions issued holds no JWT: expected are three base64url parts with dots between"},
		"it hangs up":              {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "GitHub Actions issued no token: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			j, _ := runner(t, test.answer)
			_, err := Flags{}.open(t.Context(), j)
			if err == nil || err.Error() != test.want {
				t.Fatalf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestGitHubsTokenGoesNowhereElse(t *testing.T) {
	for name, url := range map[string]string{
		"in the clear":               "http://runner.example.com/s3cret",
		"to nobody":                  "https://",
		"to whoever a user's before": "https://runner.example.com:s3cret@elsewhere.example.com",
		"to what is no URL":          "https://runner\x7f.example.com/s3cret",
	} {
		t.Run(name, func(t *testing.T) {
			j := job{
				getenv:    environment(map[string]string{EnvHub: "https://hub.example.com", envGitHubURL: url, envGitHubToken: "s3cret"}),
				transport: never{t},
			}
			_, err := Flags{}.open(t.Context(), j)
			if want := "GitHub Actions issued no token: $ACTIONS_ID_TOKEN_REQUEST_URL is no https URL"; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
	t.Run("to a server that isn't trusted", func(t *testing.T) {
		j, url := runner(t, func(http.ResponseWriter, *http.Request) { t.Error("it got the token") })
		j.transport = &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
		_, err := Flags{}.open(t.Context(), j)
		if err == nil || strings.Contains(err.Error(), url) || strings.Contains(err.Error(), "s3cret") ||
			!strings.HasPrefix(err.Error(), "GitHub Actions issued no token: tls: failed to verify certificate") {
			t.Errorf("got %v", err)
		}
	})
}

// never fails the test when it's used.
type never struct{ t *testing.T }

func (n never) RoundTrip(r *http.Request) (*http.Response, error) {
	n.t.Errorf("asked %s", r.URL)
	return nil, io.EOF
}

// slow answers when the request is given up.
type slow struct{}

func (slow) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestGitHubActionsHasTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := Flags{}.open(t.Context(), job{getenv: environment(map[string]string{EnvHub: "https://hub.example.com"}, onGitHub), transport: slow{}})
		if want := "GitHub Actions issued no token within 10s"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
