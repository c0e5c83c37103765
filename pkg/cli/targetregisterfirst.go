package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/bring"
	"cellcast.io/cellcast/pkg/probe/contract"
	"cellcast.io/cellcast/pkg/secret"
)

// mayRegister asks the hub first for all that it will be given, for what is refused
// there is better not begun: a credential that no row uses would live on. A target
// that is registered already must be the same one, and is then as its row says:
// what the hub may do there follows from the row, and not from flags that were left
// out this time.
func (e Env) mayRegister(ctx context.Context, o *targetRegisterOptions, hub *bring.Site, t *bring.Target, source *targetSource) error {
	row, err := registeredRow(ctx, hub, *t)
	if err != nil {
		return err
	}
	if row == nil {
		if err := hub.Rehearse(ctx, t.ClusterTarget()); err != nil {
			return err
		}
		return rehearseSecret(ctx, o, hub, *t, source, false)
	}
	if err := sameTarget(ctx, o, hub, *t, row); err != nil {
		return err
	}
	t.Spec = row.Spec
	if err := rehearseSecret(ctx, o, hub, *t, source, true); err != nil {
		return err
	}
	e.say("Target %s is registered already: its row is left as it is, and its credential is brought up to date.", t.Row)
	if flags := o.unheard(row); len(flags) > 0 {
		e.say("%s followed, for the row says otherwise. To change the row: %s", arent(flags), o.atHub("kubectl edit clustertarget "+t.Row.Name+" -n "+t.Row.Namespace))
	}
	return nil
}

// registeredRow is the target's row; nil where there is none.
func registeredRow(ctx context.Context, hub *bring.Site, t bring.Target) (*registryv1alpha1.ClusterTarget, error) {
	present, err := hub.Get(ctx, rowsResource(), t.Row.Namespace, t.Row.Name)
	if err != nil || present == nil {
		return nil, err
	}
	row := &registryv1alpha1.ClusterTarget{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(present.Object, row); err != nil {
		return nil, fmt.Errorf("read the row of target %s: %w", t.Row, err)
	}
	return row, nil
}

// sameTarget refuses a row that is for something else, or whose kubeconfig isn't
// where this would put one.
func sameTarget(ctx context.Context, o *targetRegisterOptions, hub *bring.Site, t bring.Target, row *registryv1alpha1.ClusterTarget) error {
	ref, wanted := row.Spec.CredentialRef, t.ClusterTarget().Spec.CredentialRef
	already := fmt.Sprintf("target %s is registered already, ", t.Row)
	switch {
	case row.DeletionTimestamp != nil:
		return &siteError{err: fmt.Errorf("target %s is being deleted", t.Row), exit: exitUnavailable,
			next: "Run the same command again when it has gone: " + o.atHub("kubectl get clustertarget "+t.Row.Name+" -n "+t.Row.Namespace)}
	case row.Spec.Namespace != t.Spec.Namespace:
		return &usageError{fmt.Sprintf("%sfor namespace %q of its cluster: choose another name", already, row.Spec.Namespace)}
	case ref.SecretRef != nil && ref.SecretRef.Name != t.SecretName():
		there, err := hub.Get(ctx, corev1.SchemeGroupVersion.WithResource("secrets"), t.Row.Namespace, ref.SecretRef.Name)
		return &siteError{err: fmt.Errorf("%swith its kubeconfig in Secret %q, which cellcast target register didn't make", already, ref.SecretRef.Name), exit: exitUsage,
			next: "Choose another name for the target, or put a kubeconfig of the closed form, FILE, into that Secret yourself:",
			run:  o.atHub(contract.PutKubeconfig(t.Row.Namespace, ref.SecretRef.Name, there != nil || err != nil))}
	case ref.SecretRef != nil && wanted.SecretRef == nil:
		return &usageError{fmt.Sprintf("%swith its kubeconfig in Secret %q: leave out --vault-path, or choose another name", already, ref.SecretRef.Name)}
	case ref.VaultRef != nil && (wanted.VaultRef == nil || ref.VaultRef.Path != wanted.VaultRef.Path):
		return &usageError{fmt.Sprintf("%swith its kubeconfig in Vault at %q: name that with --vault-path, or choose another name", already, ref.VaultRef.Path)}
	}
	return nil
}

// rehearseSecret asks for the Secret and for what the hub reads it by. Where the
// token isn't made yet, another text is in its place.
func rehearseSecret(ctx context.Context, o *targetRegisterOptions, hub *bring.Site, t bring.Target, source *targetSource, registered bool) error {
	if source == nil {
		return nil
	}
	token := source.token
	if t.Account != "" {
		token = secret.New("none-yet")
	}
	closed, err := source.closed(token)
	if err != nil || o.vaultPath != "" {
		return err
	}
	err = hub.Rehearse(ctx, t.Secret(closed.Encode()))
	switch {
	case apierrors.IsInvalid(err): // the form is right, so it's where the API is
		return &siteError{err: err, exit: exitRefused, next: fmt.Sprintf("Line and field are those of the kubeconfig that the hub would get, whose server is %s. "+
			"--endpoint names another address at which the hub finds that API; or the hub's operator permits this one.", closed.Server)}
	case errors.Is(err, bring.ErrForeign) && registered:
		return &siteError{err: err, exit: exitRefused, next: "Put a kubeconfig of the closed form, FILE, into it yourself:",
			run: o.atHub(contract.PutKubeconfig(t.Row.Namespace, t.SecretName(), true))}
	case err != nil:
		return err
	}
	for _, object := range t.Access() {
		if err := hub.Rehearse(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// unheard are the flags that say otherwise than the row, which isn't changed.
func (o *targetRegisterOptions) unheard(row *registryv1alpha1.ClusterTarget) []string {
	labels := maps.Clone(row.Labels)
	maps.DeleteFunc(labels, func(name, _ string) bool { _, said := o.labels[name]; return !said })
	said, is := o.spec, row.Spec
	var names []string
	for _, flag := range []struct {
		name string
		same bool
	}{
		{"service-account", said.ServiceAccountName == is.ServiceAccountName},
		{"pull-secret", slices.Equal(said.ImagePullSecrets, is.ImagePullSecrets)},
		{"queue", said.Queue == is.Queue},
		{"sandbox-driver", said.SandboxDriver == is.SandboxDriver},
		{"ingest-url", said.IngestURL == is.IngestURL},
		{"owner-user", said.Owner.User == is.Owner.User},
		{"owner-group", said.Owner.Group == is.Owner.Group},
		{"label", maps.Equal(o.labels, labels)},
	} {
		if o.given(flag.name) && !flag.same {
			names = append(names, "--"+flag.name)
		}
	}
	return names
}

// arent is the flags and the verb that goes with so many.
func arent(flags []string) string {
	last := len(flags) - 1
	if last == 0 {
		return flags[0] + " isn't"
	}
	return strings.Join(flags[:last], ", ") + " and " + flags[last] + " aren't"
}
