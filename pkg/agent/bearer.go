package agent

import (
	"fmt"
	"net/http"
	"os"
	"strings"
)

// userAgent is what the hub's audit log shows.
const userAgent = "cellcast-agent"

// bearer adds the token to each request, read from its file then and there: a
// token of a cell is worth little once it's rotated, and client-go's own
// reading would keep it for up to a minute.
type bearer struct {
	tokenFile string
	next      http.RoundTripper
}

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	token, err := b.token()
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("User-Agent", userAgent)
	return b.next.RoundTrip(request)
}

// token reads the token. Its errors name the file, never what is in it.
func (b bearer) token() (string, error) {
	content, err := os.ReadFile(b.tokenFile)
	if err != nil {
		return "", fmt.Errorf("reading the reporter's token (--token-file): %w", err)
	}
	token := strings.TrimSpace(string(content))
	if token == "" {
		return "", fmt.Errorf("the reporter's token (--token-file %s) is empty", b.tokenFile)
	}
	return token, nil
}
