package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// The variables of a GitHub Actions job that may ask for a token: GitHub's
// "OpenID Connect reference", section on requesting a token.
const (
	envGitHubURL   = "ACTIONS_ID_TOKEN_REQUEST_URL"
	envGitHubToken = "ACTIONS_ID_TOKEN_REQUEST_TOKEN" //nolint:gosec // the name of a variable
)

// fromGitHub asks the URL that the runner gave the job, with the runner's own
// token, which goes there and nowhere else: in no clear, and along no redirect.
func fromGitHub(j job, audience string) source {
	return fetched("GitHub Actions", func(ctx context.Context) (string, error) {
		request, err := gitHubRequest(ctx, j.getenv(envGitHubURL), j.getenv(envGitHubToken), audience)
		if err != nil {
			return "", err
		}
		client := &http.Client{
			Transport:     j.transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		response, err := client.Do(request)
		if err != nil {
			return "", withoutURL(err)
		}
		defer func() { _ = response.Body.Close() }() // it was only read
		return gitHubToken(response)
	})
}

// gitHubRequest repeats nothing of the URL in an error: what is in its path is
// the job's alone.
func gitHubRequest(ctx context.Context, address, bearer, audience string) (*http.Request, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return nil, errors.New("$" + envGitHubURL + " is no https URL")
	}
	query := u.Query()
	query.Set("audience", audience)
	u.RawQuery, u.Fragment = query.Encode(), ""
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, errors.New("$" + envGitHubURL + " is no https URL")
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	request.Header.Set("Accept", "application/json")
	return request, nil
}

// gitHubToken is the value of the answer.
func gitHubToken(response *http.Response) (string, error) {
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("it answered with HTTP %d", response.StatusCode)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, 2*maxToken+1))
	if err != nil {
		return "", fmt.Errorf("read its answer: %w", withoutURL(err))
	}
	var answer struct {
		Value string `json:"value"`
	}
	if len(content) > 2*maxToken || json.Unmarshal(content, &answer) != nil || answer.Value == "" {
		return "", errors.New("its answer is no JSON object with a value, or too long")
	}
	return answer.Value, nil
}

// withoutURL is the error without the URL that net/http puts before it.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
