package cell

import (
	"context"
	"net/http"
	"testing"

	"cellcast.io/cellcast/pkg/secret"
)

type oneToken struct{}

func (oneToken) Token(context.Context, string) (secret.Value, error) {
	return secret.New("token-of-the-hub"), nil
}
func (oneToken) Reject(string, secret.Value) bool { return true }

func TestTheTokenIsShownToTheEndpointAlone(t *testing.T) {
	for url, want := range map[string]string{
		"https://cell.example:6443/x":  "",
		"http://cell.example:6443/x":   "the hub's token for cell.example:6443 isn't for http://cell.example:6443",
		"https://cell.example/x":       "the hub's token for cell.example:6443 isn't for https://cell.example",
		"https://other.example:6443/x": "the hub's token for cell.example:6443 isn't for https://other.example:6443",
	} {
		t.Run(url, func(t *testing.T) {
			w := &wire{code: 200}
			hub := &identity{next: w, tokens: oneToken{}, audience: "cellcast:cell:a", host: "cell.example:6443"}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := hub.RoundTrip(request)
			if err == nil {
				_ = response.Body.Close()
			}
			if message(err) != want || (w.calls == 0) != (want != "") {
				t.Errorf("got %v after %d calls, want %q", err, w.calls, want)
			}
			if request.Header.Get("Authorization") != "" {
				t.Error("the caller's own request was changed")
			}
		})
	}
}
