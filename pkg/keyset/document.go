package keyset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Document returns a Fetch that reads the key set at an https address, and
// there alone: the client may carry a credential, so a redirect is a failure,
// whatever the client would do with it. However much comes, and however slowly,
// it takes MaxDocument bytes and the time of the context.
func Document(client *http.Client, address string) Fetch {
	direct := *client
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return func(ctx context.Context) ([]byte, error) { return get(ctx, &direct, address) }
}

func checkURL(u *url.URL) error {
	if u.Scheme != "https" || u.Host == "" || u.User != nil {
		return errors.New("the URL must be https, with a host and without userinfo")
	}
	return nil
}

func get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if err := checkURL(u); err != nil {
		return nil, fmt.Errorf("%.256q: %w", u.Redacted(), err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %d %s", u.Redacted(), response.StatusCode, http.StatusText(response.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.Redacted(), err)
	}
	if len(body) > MaxDocument {
		return nil, fmt.Errorf("%s answered more than %d bytes", u.Redacted(), MaxDocument)
	}
	return body, nil
}
