package vault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cellcast.io/cellcast/pkg/secret"
)

const (
	// loginTimeout bounds a login, the asking for the hub's own token included.
	loginTimeout = 10 * time.Second
	// maxSession is how long a token is used at most, also one without an end.
	maxSession = time.Hour
)

// session is Vault's token, and until when it's used.
type session struct {
	token secret.Value
	until time.Time
}

// enter returns a session whose token isn't the refused one. It reports whether
// it took a login. Many who need one at once cause one.
func (s *Source) enter(ctx context.Context, refused secret.Value) (held session, entered bool, err error) {
	s.mu.Lock()
	held = s.session
	s.mu.Unlock()
	if !held.token.IsZero() && !held.token.Equal(refused) && s.options.Clock.Now().Before(held.until) {
		return held, false, nil
	}
	login := s.logins.DoChan("", func() (any, error) { return s.login(context.WithoutCancel(ctx)) })
	select {
	case <-ctx.Done():
		return session{}, false, &Error{Kind: Unreachable, err: fmt.Errorf("waiting for the hub's login: %w", context.Cause(ctx))}
	case result := <-login:
		if result.Err != nil {
			return session{}, false, result.Err
		}
		return result.Val.(session), true, nil
	}
}

// login belongs to everyone who waits, so no one's context ends it.
func (s *Source) login(ctx context.Context) (session, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	own, err := s.options.Token(ctx)
	if err != nil {
		return session{}, &Error{Kind: NoHubToken, err: err}
	}
	now := s.options.Clock.Now()
	answer, err := s.api.Logical().WriteWithContext(ctx, "auth/"+s.options.AuthMount+"/login",
		map[string]any{"role": s.options.Role, "jwt": own.Reveal()})
	if err != nil {
		return session{}, loginFault(err)
	}
	if answer == nil || answer.Auth == nil || answer.Auth.ClientToken == "" {
		return session{}, &Error{Kind: Unexpected, err: errors.New("the answer to the hub's login has no token")}
	}
	life := time.Duration(answer.Auth.LeaseDuration) * time.Second * 4 / 5
	if life <= 0 || life > maxSession {
		life = maxSession
	}
	held := session{token: secret.New(answer.Auth.ClientToken), until: now.Add(life)}
	s.mu.Lock()
	s.session = held
	s.mu.Unlock()
	return held, nil
}
