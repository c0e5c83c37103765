package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/decisions"
	"cellcast.io/cellcast/pkg/cli/kubeconfigfile"
	"cellcast.io/cellcast/pkg/cli/stance"
	"cellcast.io/cellcast/pkg/cli/terminal"
	"cellcast.io/cellcast/pkg/refusal"
)

const envCacheDir = "CELLCAST_CACHE_DIR"

// standIn ends a run that the hub gave no answer to: by the declared stance or by
// the failure itself. Either way no earlier credential is left.
func (e Env) standIn(o *placeOptions, hub *hub, spec cellcastv1alpha1.PlacementSpec, file *kubeconfigfile.File, failed error) error {
	answer, err := e.stanceAnswers(o, hub, failed)
	if left := e.abandon(file, o.writeKubeconfig); left != nil {
		return errors.Join(failed, left)
	}
	if err != nil {
		why := ""
		if o.stance.Declared() && !errors.Is(failed, context.Canceled) {
			why = fmt.Sprintf("--on-unavailable=%s doesn't answer this: %v", o.stance.String(), err)
		}
		return &placeError{err: failed, stance: why, explain: o.explain}
	}
	e.sayStoodIn(o, answer, failed)
	if err := e.writePlacement(o.format, standInFor(spec, answer, failed)); err != nil {
		return err
	}
	if o.mints() {
		return &stoodInError{answer.Cell.Name}
	}
	return nil
}

// stanceAnswers is what the declared stance answers to a failure, if it may.
func (e Env) stanceAnswers(o *placeOptions, hub *hub, failed error) (stance.Answer, error) {
	var asked *requestError
	if !errors.As(failed, &asked) {
		return stance.Answer{}, errNotUnavailable
	}
	if _, refused := refusal.FromStatus(asked.err); !refused && !asked.unavailable() {
		return stance.Answer{}, errNotUnavailable
	}
	return o.stance.Answer(asked.refused, func() (decisions.Decision, error) { return e.lastDecision(o, hub) })
}

var errNotUnavailable = errors.New("it stands in for a hub that can't decide, and that isn't what failed")

// standInFor is the answer as the hub would have given it.
func standInFor(spec cellcastv1alpha1.PlacementSpec, a stance.Answer, failed error) *cellcastv1alpha1.Placement {
	p := &cellcastv1alpha1.Placement{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(a.DecidedAt)},
		Spec:       spec,
		Status:     cellcastv1alpha1.PlacementStatus{Cell: a.Cell, Policy: a.Policy, Source: a.Source, Confidence: a.Confidence},
	}
	p.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("Placement"))
	if refused, ok := refusal.FromStatus(failed); ok && spec.Explain && refused.Trace != nil {
		p.Status.Candidates, p.Status.HiddenCells = refused.Trace.Candidates, refused.Trace.Hidden
	}
	return p
}

// sayStoodIn says what failed, and what was answered instead.
func (e Env) sayStoodIn(o *placeOptions, a stance.Answer, failed error) {
	r := explain(failed, e.Now())
	e.say("Warning: %s", terminal.Printable(r.says))
	if r.requestID != "" {
		e.say("Request id: %s", terminal.Printable(r.requestID))
	}
	from := "the cell that was named for this case"
	if a.Source == cellcastv1alpha1.SourceCache {
		from = fmt.Sprintf("the hub's decision of %s ago", age(e.Now().Sub(a.DecidedAt)))
	}
	e.say("Answered by --on-unavailable=%s: %s, %s (source %s, confidence %s). A credential never falls back: there is none.",
		o.stance.String(), terminal.Printable(a.Cell.Name), from, a.Source, a.Confidence)
}

// remember keeps the hub's decision for last-known. That it can't doesn't fail
// the run; where nobody named a folder and the user has none, it isn't tried.
func (e Env) remember(o *placeOptions, hub *hub, s cellcastv1alpha1.PlacementStatus) {
	cache, err := e.cache(o)
	if err != nil {
		return
	}
	decision := decisions.Decision{Cell: s.Cell, Policy: s.Policy, DecidedAt: e.Now().UTC()}
	if err := cache.Save(o.key(hub), decision); err != nil {
		e.say("Warning: the decision isn't kept for --on-unavailable=last-known: %v", err)
	}
}

// lastDecision is the hub's last one for the workload.
func (e Env) lastDecision(o *placeOptions, hub *hub) (decisions.Decision, error) {
	cache, err := e.cache(o)
	if err != nil {
		return decisions.Decision{}, fmt.Errorf("there is no folder for decisions: name one with --cache-dir: %w", err)
	}
	d, err := cache.Last(o.key(hub), e.Now(), o.cacheTTL)
	if errors.Is(err, decisions.ErrNone) {
		return d, fmt.Errorf("%w for %q at %s in %s. Keep that folder from one run to the next (--cache-dir or $%s), or name a cell: --on-unavailable=CELL",
			err, o.workload, hub.at.Config.Host, cache.Dir(), envCacheDir)
	}
	return d, err
}

func (o *placeOptions) key(hub *hub) decisions.Key {
	return decisions.Key{Hub: hub.at.Config.Host, Workload: o.workload, Dark: o.dark}
}

// cache is the folder of decisions that the user named, or has.
func (e Env) cache(o *placeOptions) (decisions.Cache, error) {
	for _, dir := range []string{o.cacheDir, e.Getenv(envCacheDir)} {
		if dir != "" {
			return decisions.In(dir), nil
		}
	}
	if e.UserCacheDir == nil {
		return decisions.Cache{}, errors.New("this user has no folder for caches")
	}
	dir, err := e.UserCacheDir()
	if err != nil {
		return decisions.Cache{}, err
	}
	return decisions.In(filepath.Join(dir, "cellcast")), nil
}
