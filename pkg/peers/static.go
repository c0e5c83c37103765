package peers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
)

// Static returns a Source of peers that never change.
func Static(urls []string) Source {
	return func(ctx context.Context, set func([]string)) error {
		set(urls)
		<-ctx.Done()
		return nil
	}
}

// CheckURL says what keeps a URL from being that of a peer's direct door.
func CheckURL(peer string) error {
	u, err := url.Parse(peer)
	switch {
	case err != nil:
		return errors.New("it's no URL")
	case u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" || u.User != nil:
		return fmt.Errorf("%q isn't https://host:port", u.Redacted())
	case u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q has more than https://host:port", u.Redacted())
	}
	return nil
}
