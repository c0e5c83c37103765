package cli

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/bring"
	"cellcast.io/cellcast/pkg/cli/door"
	"cellcast.io/cellcast/pkg/cli/kubeconfigfile"
	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/shell"
)

// registerTarget gathers the facts, and prints or creates what follows from them:
// the credential on the target, then what the hub reads it by, then the row.
func (e Env) registerTarget(ctx context.Context, o *targetRegisterOptions, name string) error {
	at, err := e.openRows(ctx, o.hubFlags())
	if err != nil {
		return err
	}
	namespace := o.hubNamespace
	if namespace == "" {
		namespace = at.Namespace
	}
	target, err := o.target(namespace, name)
	if err != nil {
		return err
	}
	source, err := e.targetSource(o)
	if err != nil {
		return err
	}
	if o.dryRun {
		return e.printTarget(target, source)
	}
	hub, err := e.site("the hub", at.Config, target, o)
	if err != nil {
		return err
	}
	if err := e.mayRegister(ctx, o, hub, &target, source); err != nil {
		return &beforehandError{err}
	}
	if err := e.registerAt(ctx, o, hub, target, source); err != nil {
		return err
	}
	if o.wait {
		return e.waitForProbe(ctx, o, at, target)
	}
	e.say("Next: %s", probeHint(namespace, name, o.hubKubeconfig, o.hubContext))
	return nil
}

// openRows goes through the door behind which the rows are, whatever the
// environment says about the other one.
func (e Env) openRows(ctx context.Context, flags door.Flags) (door.Door, error) {
	at, err := flags.Open(ctx, func(string) string { return "" })
	if err != nil {
		return at, err
	}
	if at.Kind != door.Aggregated {
		return at, &usageError{"a target's row is at the hub's API server: name its kubeconfig, without --hub"}
	}
	return at, nil
}

// registerAt creates everything, the row last.
func (e Env) registerAt(ctx context.Context, o *targetRegisterOptions, hub *bring.Site, t bring.Target, source *targetSource) error {
	var file *kubeconfigfile.File
	var err error
	if o.writeKubeconfig != "" {
		if file, err = kubeconfigfile.Reserve(o.writeKubeconfig); err != nil {
			return err
		}
	}
	closed, err := e.closedKubeconfig(ctx, o, t, source)
	if file != nil {
		if err == nil {
			err = file.Commit(closed.Encode())
		}
		if err != nil {
			_, failed := file.Abandon()
			return errors.Join(err, failed)
		}
		e.say("Wrote %s, readable by you alone. Put it into Vault, where MOUNT is the KV engine of the hub, and remove it:", o.writeKubeconfig)
		e.say("  vault kv put -mount=MOUNT %s %s=@%s && rm %[3]s", shell.Word(o.vaultPath), registryv1alpha1.SecretKeyKubeconfig, shell.Word(o.writeKubeconfig))
	}
	if err != nil {
		return err
	}
	var objects []runtime.Object
	if o.vaultPath == "" {
		objects = append([]runtime.Object{t.Secret(closed.Encode())}, t.Access()...)
	}
	if err := e.ensure(ctx, hub, objects...); err != nil {
		return err
	}
	row, err := hub.Get(ctx, registryv1alpha1.SchemeGroupVersion.WithResource("clustertargets"), t.Row.Namespace, t.Row.Name)
	if err != nil || row != nil {
		return err
	}
	return e.ensure(ctx, hub, t.ClusterTarget())
}

// closedKubeconfig is what the hub gets: with the token of the file, or with that
// of a ServiceAccount which is made now. It's empty where Vault has it already.
func (e Env) closedKubeconfig(ctx context.Context, o *targetRegisterOptions, t bring.Target, source *targetSource) (kubeconfig.Kubeconfig, error) {
	if source == nil {
		return kubeconfig.Kubeconfig{}, nil
	}
	token := source.token
	if t.Account != "" {
		var err error
		if token, err = e.createCredential(ctx, o, t, source); err != nil {
			return kubeconfig.Kubeconfig{}, err
		}
	}
	return source.closed(token)
}

// ensure creates objects in their order, and says what became of each.
func (e Env) ensure(ctx context.Context, at *bring.Site, objects ...runtime.Object) error {
	for _, object := range objects {
		outcome, err := at.Ensure(ctx, object)
		if err != nil {
			return err
		}
		e.say("%s %s at %s.", outcome, named(object), at.Where)
	}
	return nil
}

// named is an object in words.
func named(object runtime.Object) string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	return bring.Named(&unstructured.Unstructured{Object: content})
}

// waitForProbe is probe, for the target that was just registered.
func (e Env) waitForProbe(ctx context.Context, o *targetRegisterOptions, at door.Door, t bring.Target) error {
	hub, err := e.connect(at, o.timeout)
	if err != nil {
		return err
	}
	_, err = e.watchProbe(ctx, hub, t.Row, o.waitTimeout, formatTable)
	return err
}
