package clustertarget

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/probe"
)

func notFound(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: "registry.cellcast.io", Resource: "clustertargets"}, name)
}

// cluster is a target's cluster, and the source of its credential.
type cluster struct {
	mu sync.Mutex
	// err is what every call gets; hangs has them hang until they're given up, and
	// stubborn has them not even end then.
	err             error
	hangs, stubborn bool
	version         string // of the credential; "1" where it's empty
	silent          bool   // its pods can't reach the hub
	keeps           bool   // no pod can be deleted there
	lazy            bool   // the probe leaves its canary behind
	steps           int    // items that are checked before the canary
	step            time.Duration
	pods            map[string]types.UID
	deleted         []string
	looks           []time.Time
}

func (c *cluster) set(change func(*cluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

func (c *cluster) podsLeft() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pods)
}

func (c *cluster) looked() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looks
}

// call is a call to the cluster, which takes ten milliseconds.
func (c *cluster) call(ctx context.Context) (version string, err error) {
	c.mu.Lock()
	hangs, stubborn := c.hangs, c.stubborn
	c.mu.Unlock()
	if stubborn {
		time.Sleep(time.Hour)
	}
	if hangs {
		<-ctx.Done()
		return "", ctx.Err()
	}
	select {
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if version = c.version; version == "" {
		version = "1"
	}
	return version, c.err
}

func (c *cluster) deletePod(ctx context.Context, name string, uid types.UID) error {
	if _, err := c.call(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keeps {
		return &failure.Error{Kind: failure.Rejected, Cell: "c", Err: errors.New("denied")}
	}
	if has, ok := c.pods[name]; ok && (uid == "" || uid == has) {
		delete(c.pods, name)
		c.deleted = append(c.deleted, name)
	}
	return nil
}

// targets is the hub's hold on the clusters.
type targets struct {
	w     *world
	alive func() error
}

func (t targets) of(row *registryv1alpha1.ClusterTarget) *cluster {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	return t.w.clusters[row.Name]
}

func (t targets) Look(ctx context.Context, row *registryv1alpha1.ClusterTarget) (Sight, error) {
	c := t.of(row)
	c.set(func(c *cluster) { c.looks = append(c.looks, time.Now()) })
	version, err := c.call(ctx)
	return Sight{CredentialVersion: version}, err
}

func (t targets) DeleteCanary(ctx context.Context, row *registryv1alpha1.ClusterTarget, podName string, uid types.UID) error {
	if err := t.alive(); err != nil {
		return err
	}
	return t.of(row).deletePod(ctx, podName, uid)
}

func (t targets) Forget(uid types.UID) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	t.w.forgets = append(t.w.forgets, uid)
}

// prober is a short checklist: the API, some items, and a canary.
type prober struct {
	w     *world
	alive func() error
}

func (p prober) Probe(ctx context.Context, row *registryv1alpha1.ClusterTarget, run registryv1alpha1.ProbeRun, progress probe.Progress) Result {
	p.w.mu.Lock()
	p.w.probes++
	c := p.w.clusters[row.Name]
	p.w.mu.Unlock()
	version, err := c.call(ctx)
	if err != nil {
		return failed(registryv1alpha1.CheckReachable, registryv1alpha1.TargetUnreachable)
	}
	r := Result{CredentialVersion: version, Result: probe.Result{
		Checks: []registryv1alpha1.TargetCheck{{Name: registryv1alpha1.CheckCredential, Result: registryv1alpha1.CheckPassed},
			{Name: registryv1alpha1.CheckReachable, Result: registryv1alpha1.CheckPassed}}}}
	progress.Checked(ctx, r.Checks)
	for _, name := range registryv1alpha1.TargetChecks()[2:][:c.steps] {
		time.Sleep(c.step)
		r.Checks = append(r.Checks, registryv1alpha1.TargetCheck{Name: name, Result: registryv1alpha1.CheckPassed})
		progress.Checked(ctx, append([]registryv1alpha1.TargetCheck(nil), r.Checks...))
	}
	identity := registryv1alpha1.TargetIdentity{Issuer: "https://issuer", Audience: "hub"}
	if progress.Identified(ctx, identity) != nil || p.canary(ctx, c, row, progress) != nil {
		return failed(registryv1alpha1.CheckCanary, registryv1alpha1.TargetFailed)
	}
	r.Checks = append(r.Checks, registryv1alpha1.TargetCheck{Name: registryv1alpha1.CheckCanary, Result: registryv1alpha1.CheckPassed})
	r.State, r.Identity, r.Capabilities = registryv1alpha1.TargetReady, &identity, []registryv1alpha1.TargetCapability{registryv1alpha1.CapabilityAgentTurns}
	return r
}

func (p prober) canary(ctx context.Context, c *cluster, row *registryv1alpha1.ClusterTarget, progress probe.Progress) error {
	name, uid := probe.CanaryName(string(uuid.NewUUID())), uuid.NewUUID()
	if err := progress.CanaryNamed(ctx, name); err != nil {
		return err
	}
	if _, err := c.call(ctx); err != nil {
		return err
	}
	c.set(func(c *cluster) { c.pods[name] = uid })
	defer func() {
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if !c.lazy && p.alive() == nil && c.deletePod(detached, name, uid) == nil {
			progress.CanaryDeleted(detached)
		}
	}()
	if err := progress.CanaryCreated(ctx, uid); err != nil {
		return err
	}
	if !c.silent {
		go func() {
			time.Sleep(time.Second)
			p.w.replica(row.Name, `{"run":{"canary":{"receivedAt":"2026-01-01T00:00:00Z"}}}`)
		}()
	}
	return progress.AwaitReceipt(ctx)
}

func failed(check registryv1alpha1.TargetCheckName, state registryv1alpha1.TargetState) Result {
	return Result{Result: probe.Result{State: state, Failing: string(check) + ": it failed",
		Checks: []registryv1alpha1.TargetCheck{{Name: registryv1alpha1.CheckCredential, Result: registryv1alpha1.CheckPassed}, {Name: check, Result: registryv1alpha1.CheckFailed}}}}
}

// refuse is the API's validation.
func (w *world) refuse(object client.Object, patch []byte) error {
	if w.invalid && strings.Contains(string(patch), `"finishedAt":"`) {
		w.invalid = false
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ClusterTarget"}, object.GetName(), nil)
	}
	return nil
}

// advice is the error of a source that can't be read.
type advice string

func (a advice) Error() string  { return "no such secret" }
func (a advice) Advice() string { return string(a) }

func unreachable() error {
	return &failure.Error{Kind: failure.Unreachable, Cell: "c", Err: errors.New("refused")}
}
