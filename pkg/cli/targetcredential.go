package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"cellcast.io/cellcast/pkg/cli/bring"
	"cellcast.io/cellcast/pkg/cli/terminal"
	"cellcast.io/cellcast/pkg/secret"
)

// tokenWait is how long the target has to issue the token, which takes it far
// less than a second.
const tokenWait = 30 * time.Second

// createCredential makes the hub's ServiceAccount on the target, as the user, with
// the contract's rights and no others, and returns its token.
func (e Env) createCredential(ctx context.Context, o *targetRegisterOptions, t bring.Target, source *targetSource) (secret.Value, error) {
	config, err := source.ClientConfig()
	if err != nil {
		return secret.Value{}, err
	}
	site, err := e.site("the target", config, t, o)
	if err != nil {
		return secret.Value{}, err
	}
	e.say("On the target (context %q, %s) are created, unless they are there already:", source.Context, config.Host)
	for _, object := range append(t.Needed(), t.Optional()...) {
		e.say("  %s", named(object))
	}
	if err := e.ensure(ctx, site, t.Needed()...); err != nil {
		return secret.Value{}, ofAnother(err)
	}
	for _, object := range t.Optional() {
		err := e.ensure(ctx, site, object)
		if apierrors.IsForbidden(err) {
			e.say("Note: %s isn't created, for you may not do that: %s. The target can be used without; the probe says for what.", named(object), terminal.Printable(err.Error()))
			continue
		}
		if err != nil {
			return secret.Value{}, ofAnother(err)
		}
	}
	return e.issuedToken(ctx, site, t)
}

// ofAnother says what to do where the name on the target is taken: the target's own
// may stay.
func ofAnother(err error) error {
	if !errors.Is(err, bring.ErrForeign) {
		return err
	}
	return &siteError{err: err, exit: exitRefused, next: "Name another ServiceAccount with --credential-service-account, or see whose it is and delete it."}
}

// issuedToken waits until the target has put a token into the Secret.
func (e Env) issuedToken(ctx context.Context, site *bring.Site, t bring.Target) (secret.Value, error) {
	for deadline := e.Now().Add(tokenWait); ; {
		object, err := site.Get(ctx, corev1.SchemeGroupVersion.WithResource("secrets"), t.Spec.Namespace, t.TokenSecretName())
		if err != nil {
			return secret.Value{}, err
		}
		if object != nil {
			encoded, _, _ := unstructured.NestedString(object.Object, "data", corev1.ServiceAccountTokenKey)
			if token, err := base64.StdEncoding.DecodeString(encoded); err == nil && len(token) > 0 {
				return secret.New(string(token)), nil
			}
		}
		if deadline.Sub(e.Now()) <= probePoll {
			return secret.Value{}, fmt.Errorf("the target has put no token into Secret %s of namespace %s in %s: its controller manager does that; run the same command again when it runs",
				t.TokenSecretName(), t.Spec.Namespace, tokenWait)
		}
		if err := e.sleep(ctx, probePoll); err != nil {
			return secret.Value{}, err
		}
	}
}

// site is a cluster in which registering creates objects.
func (e Env) site(where string, config *rest.Config, t bring.Target, o *targetRegisterOptions) (*bring.Site, error) {
	return e.siteOf(where, config, t.Row.String(), o.timeout)
}

func (e Env) siteOf(where string, config *rest.Config, row string, timeout time.Duration) (*bring.Site, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // a handful of requests
	config.UserAgent = userAgent()
	config.WarningHandler = rest.NewWarningWriter(e.Err, rest.WarningWriterOptions{Deduplicate: true})
	return bring.NewSite(where, config, row, timeout)
}
