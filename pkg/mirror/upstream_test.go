package mirror_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"cellcast.io/cellcast/pkg/mirror"
)

func TestAPIReadsADocumentOfTheHubsAPIServer(t *testing.T) {
	for sentence, tt := range map[string]struct {
		code int
		body string
		ok   bool
	}{
		"a document":                   {200, hubKeys, true},
		"one of the greatest length":   {200, strings.Repeat("x", 256<<10), true},
		"one byte more":                {200, strings.Repeat("x", 256<<10+1), false},
		"a client without permission":  {403, "no", false},
		"a server that asks for a try": {503, "no", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			calls := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if calls++; r.URL.Path != mirror.KeysPath {
					t.Errorf("asked for %s", r.URL.Path)
				}
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(tt.code)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			got, err := mirror.API{Client: client.RESTClient()}.Get(t.Context(), mirror.KeysPath)
			if (err == nil) != tt.ok || tt.ok && string(got) != tt.body {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
			if calls != 1 {
				t.Errorf("asked %d times, want once", calls)
			}
		})
	}
}
