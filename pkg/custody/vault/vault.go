// Package vault reads single secrets of a HashiCorp Vault or OpenBao, from a KV
// version 2 engine, as the hub itself: by Kubernetes auth with a short-lived token
// of the hub's own ServiceAccount.
//
// It promises:
//
//   - Only what the operator set up is asked, and nothing of the process's
//     environment changes that: no VAULT_ variable and no proxy. A VAULT_ variable
//     that can't be read fails New, for the client library reads them before it
//     can be told not to.
//   - A redirect isn't followed, so neither token is shown to another host.
//   - What is read is the path literally as given: one that the way there could
//     turn into another is refused.
//   - No more than 1 MiB of an answer is read, and no error quotes any of it.
//   - Vault's token is held in memory alone, until four fifths of its life are over
//     or Vault refuses it.
//
// A Source bounds no read but the login, to ten seconds: the context does.
package vault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/hashicorp/vault/api"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"cellcast.io/cellcast/pkg/secret"
)

// TokenFunc gives a short-lived token of the hub's own ServiceAccount, for an
// audience that nothing but Vault takes.
type TokenFunc func(ctx context.Context) (secret.Value, error)

// Options say which Vault, and how the hub comes in.
type Options struct {
	// Address is its https URL. CA has the certificates (PEM) to check it by;
	// empty means the system's roots.
	Address string
	CA      []byte
	// Namespace is that of Vault Enterprise; empty means none.
	Namespace string
	// Mount is that of the KV version 2 engine.
	Mount string
	// AuthMount and Role are those of the Kubernetes auth method.
	AuthMount, Role string
	// Token is who the hub is.
	Token TokenFunc
	// Dial makes the connections. Nil means the system's own way.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Clock is when Vault's token is renewed by. Nil means the real one.
	Clock clock.PassiveClock
}

// Source is one KV version 2 engine. It's safe for use by many at once.
type Source struct {
	api     *api.Client
	options Options
	logins  singleflight.Group

	mu      sync.Mutex
	session session
}

// New returns a Source. It connects to nothing yet.
func New(o Options) (*Source, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	switch {
	case o.Token == nil || o.Role == "":
		return nil, errors.New("the hub's role in Vault, and a token to take it with, are needed")
	case !isMount(o.Mount) || !isMount(o.AuthMount):
		return nil, errors.New("the mount of Vault's KV engine, or that of its auth method, isn't a path of letters, digits and ._-")
	}
	client, err := newClient(o)
	if err != nil {
		return nil, err
	}
	return &Source{api: client, options: o}, nil
}

// Read returns the text under a key of the secret at the path, in its newest
// version, and the number of that. The error is an *Error.
func (s *Source) Read(ctx context.Context, at, key string) (text secret.Value, version string, err error) {
	if "/"+at != path.Clean("/"+at) {
		return secret.Value{}, "", &Error{Kind: Absent, err: errors.New("no secret can be at such a path")}
	}
	held, entered, err := s.enter(ctx, secret.Value{})
	if err != nil {
		return secret.Value{}, "", err
	}
	answer, err := s.get(ctx, held.token, at)
	if !entered && err != nil && KindOf(err) == Denied { // the token may have been revoked, or its policies changed
		if held, _, err = s.enter(ctx, held.token); err != nil {
			return secret.Value{}, "", err
		}
		answer, err = s.get(ctx, held.token, at)
	}
	if err != nil {
		return secret.Value{}, "", err
	}
	return pick(answer, key)
}

// get asks for a secret. The token goes with the request alone: the client that
// all share has none.
func (s *Source) get(ctx context.Context, token secret.Value, at string) (*api.Secret, error) {
	answer, err := s.api.Logical().ReadWithRequest(ctx, api.NewLogicalReadRequest(
		s.options.Mount+"/data/"+at, nil, http.Header{api.AuthHeaderName: {token.Reveal()}}))
	if err != nil {
		return nil, fault(err)
	}
	if answer == nil || answer.Data == nil {
		return nil, &Error{Kind: Absent, err: errors.New("no secret is there")}
	}
	return answer, nil
}

// pick takes the text and the version out of an answer.
func pick(answer *api.Secret, key string) (secret.Value, string, error) {
	about, isKV2 := answer.Data["metadata"].(map[string]any)
	number, hasNumber := about["version"].(json.Number)
	if !isKV2 || !hasNumber {
		return secret.Value{}, "", &Error{Kind: Unexpected, err: errors.New("the answer isn't that of a KV version 2 engine")}
	}
	if answer.Data["data"] == nil {
		return secret.Value{}, "", &Error{Kind: Absent, err: errors.New("the newest version of the secret was deleted")}
	}
	members, _ := answer.Data["data"].(map[string]any)
	text, isText := members[key].(string)
	if !isText || text == "" {
		return secret.Value{}, "", &Error{Kind: NoKey, err: errors.New("the secret has no text under the key")}
	}
	version, err := number.Int64()
	if err != nil {
		return secret.Value{}, "", &Error{Kind: Unexpected, err: errors.New("the version isn't a number")}
	}
	return secret.New(text), fmt.Sprint(version), nil
}

// isMount reports whether a text is a path that means itself wherever it's put.
func isMount(text string) bool {
	for segment := range strings.SplitSeq(text, "/") {
		if segment == "" || strings.Trim(segment, ".") == "" || strings.ContainsFunc(segment, isForeign) {
			return false
		}
	}
	return true
}

func isForeign(c rune) bool {
	letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	return !letter && !strings.ContainsRune("._-", c)
}
