package hub

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell"
	targetcontroller "cellcast.io/cellcast/pkg/controller/clustertarget"
	"cellcast.io/cellcast/pkg/probe"
)

// prober goes through the checklist with the registered credential.
type prober struct {
	targets  *targets
	settings TargetSettings
	url      string // of the external listener
}

var _ targetcontroller.Prober = prober{}

// Probe runs every item.
func (p prober) Probe(ctx context.Context, row *registryv1alpha1.ClusterTarget, run registryv1alpha1.ProbeRun, progress probe.Progress) targetcontroller.Result {
	var found targetcontroller.Result
	roots, err := p.roots()
	if err != nil {
		klog.FromContext(ctx).Error(err, "A canary is made without the certificates of the external listener")
	}
	found.Result = probe.Run(ctx, probe.Spec{
		Namespace: row.Namespace, Name: row.Name, UID: row.UID, Target: row.Spec, RunID: run.ID,
		Ingest:      probe.Ingest{URL: p.url, CA: roots, Audience: p.url},
		CanaryImage: p.settings.CanaryImage,
	}, func(ctx context.Context) (probe.API, error) {
		c, err := p.targets.connect(ctx, row)
		found.CredentialVersion = c.at.Version
		if err != nil {
			return nil, err
		}
		return c.client, nil
	}, progress)
	return found
}

// roots are read for each run, so that a new certificate needs no restart.
func (p prober) roots() ([]byte, error) {
	if p.settings.IngestCAFile == "" {
		return nil, nil
	}
	roots, err := os.ReadFile(p.settings.IngestCAFile)
	if err == nil {
		_, err = cell.ParseCABundle(roots)
	}
	if err != nil {
		return nil, fmt.Errorf("--ingest-ca-file: %w", err)
	}
	return roots, nil
}

var _ targetcontroller.Targets = &targets{}

// Look reads the credential anew and asks the target who the hub is there.
func (t *targets) Look(ctx context.Context, row *registryv1alpha1.ClusterTarget) (targetcontroller.Sight, error) {
	c, err := t.connect(ctx, row)
	if err != nil {
		return targetcontroller.Sight{CredentialVersion: c.at.Version}, err
	}
	_, err = c.client.WhoAmI(ctx)
	return targetcontroller.Sight{CredentialVersion: c.at.Version}, err
}

// DeleteCanary deletes a canary that was left behind.
func (t *targets) DeleteCanary(ctx context.Context, row *registryv1alpha1.ClusterTarget, podName string, podUID types.UID) error {
	c, err := t.reach(ctx, row)
	if err != nil {
		return err
	}
	return probe.DeleteCanary(ctx, c.client, row.Spec.Namespace, podName, podUID)
}
