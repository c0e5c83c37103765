package cli

import (
	"context"
	"errors"
	"fmt"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/kubeconfigfile"
)

// place asks, puts the credential where it belongs, and prints the answer. Where
// the hub has none, the declared stance may answer.
func (e Env) place(ctx context.Context, o *placeOptions) error {
	spec, err := o.spec()
	if err != nil {
		return err
	}
	var file *kubeconfigfile.File
	if o.writeKubeconfig != "" {
		if file, err = kubeconfigfile.Reserve(o.writeKubeconfig); err != nil {
			return err
		}
	}
	hub, err := e.openHub(ctx, o.door, o.timeout)
	if err != nil {
		return errors.Join(err, e.abandon(file, o.writeKubeconfig))
	}
	answer, err := e.decideInto(ctx, o, hub, spec, file)
	if err != nil {
		return e.standIn(o, hub, spec, file, err)
	}
	if o.dryRun == "none" {
		e.remember(o, hub, answer.Status)
	}
	return e.printPlacement(o, answer)
}

// decide is place, and checks that the answer is one: a cell, with a credential
// exactly where one was asked for.
func (h *hub) decide(ctx context.Context, spec cellcastv1alpha1.PlacementSpec, dryRun bool) (*cellcastv1alpha1.Placement, error) {
	answer, err := h.place(ctx, spec, dryRun)
	switch {
	case err != nil:
		return nil, err
	case answer.Status.Cell.Name == "":
		return nil, errors.New("the hub answered without a cell; is it a hub?")
	case dryRun:
		// Nobody asked for it, so nobody shall see it.
		answer.Status.Credential = nil
	case answer.Status.Credential == nil || answer.Status.Credential.Token == "":
		return nil, &noCredentialError{fmt.Sprintf("the hub chose cell %q and returned no credential for it", answer.Status.Cell.Name)}
	}
	return answer, nil
}

// decideInto asks and moves the token from the answer into the file, where there
// is one.
func (e Env) decideInto(ctx context.Context, o *placeOptions, hub *hub, spec cellcastv1alpha1.PlacementSpec, file *kubeconfigfile.File) (*cellcastv1alpha1.Placement, error) {
	answer, err := hub.decide(ctx, spec, !o.mints())
	if err != nil || file == nil {
		return answer, err
	}
	content, err := kubeconfigfile.KubeconfigOf(answer.Status.Cell, *answer.Status.Credential,
		kubeconfigfile.Origin{Workload: o.workload, RequestID: answer.Status.RequestID})
	if err != nil {
		return nil, err
	}
	if err := file.Commit(content); err != nil {
		return nil, err
	}
	answer.Status.Credential.Token = ""
	return answer, nil
}

// abandon gives the file up, where there is one, and says so where an earlier
// credential went.
func (e Env) abandon(file *kubeconfigfile.File, path string) error {
	if file == nil {
		return nil
	}
	removed, err := file.Abandon()
	if removed {
		e.say("Removed %s: it was for the cell of an earlier run.", path)
	}
	return err
}
