package clustertarget

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// target is what this process knows of a target beside its row: what is under
// way, what has ended and isn't in the row yet, and when to look next. All of it
// may be lost: the row alone says how to go on.
type target struct {
	key types.NamespacedName
	uid types.UID

	mu sync.Mutex
	// version is the row's as it was last written here.
	version string
	// served is the id of the request that needs no run any more.
	served string
	known  bool

	run      *run // queued or under way
	runEnded *ended
	look     *look // queued or under way
	lookEnd  *look

	leaving *leaving
	gone    bool
	rhythm
}

// track returns what is known of the row. A row of the same name with another
// UID is another target, of which nothing is known.
func (r *Reconciler) track(row *registryv1alpha1.ClusterTarget) *target {
	key := client.ObjectKeyFromObject(row)
	r.mu.Lock()
	t := r.targets[key]
	r.mu.Unlock()
	if t != nil && t.uid == row.UID {
		return t
	}
	r.drop(key)
	t = &target{key: key, uid: row.UID, rhythm: newRhythm(r.Clock.Now(), r.Rescan)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.targets[key] = t
	return t
}

// drop lets go of a target whose row is gone. What of it is still under way
// ends, and lets go once more: it may have read the credential meanwhile.
func (r *Reconciler) drop(key types.NamespacedName) {
	r.mu.Lock()
	t := r.targets[key]
	delete(r.targets, key)
	r.mu.Unlock()
	if t == nil {
		return
	}
	t.stop(func() { t.gone = true })
	r.Targets.Forget(t.uid)
}

// stop has what is under way end, and what has ended forgotten.
func (t *target) stop(also func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	also()
	if t.run != nil {
		t.run.cancel()
	}
	if t.look != nil {
		t.look.cancel()
	}
	t.look, t.lookEnd, t.runEnded = nil, nil, nil
}

// straggled reports whether the target was dropped while something of it was
// under way.
func (t *target) straggled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gone
}

// wrote keeps the version that a write of ours gave the row.
func (t *target) wrote(version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.version == "" || older(t.version, version) {
		t.version = version
	}
}

// ahead reports whether a row of this version is older than one that was
// written here.
func (t *target) ahead(version string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version != "" && older(version, t.version)
}

// older compares versions. Where they can't be compared neither is older, and a
// write to a row that isn't the newest then fails on its version.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// ended returns what has ended and isn't in the row yet, if it speaks of this
// generation. What speaks of another one is forgotten.
func (t *target) ended(generation int64) (*ended, *look) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runEnded != nil && t.runEnded.row.Generation != generation {
		t.runEnded = nil
	}
	if t.lookEnd != nil && (t.lookEnd.row.Generation != generation || t.run != nil || t.runEnded != nil) {
		t.lookEnd = nil
	}
	return t.runEnded, t.lookEnd
}

// settle forgets what has ended, for it's in the row now, and says when to look
// next.
func (t *target) settle(run *ended, look *look, now time.Time, state registryv1alpha1.TargetState, rescan time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run == nil && look == nil {
		return
	}
	t.runEnded, t.lookEnd = nil, nil
	if run != nil {
		t.failures = 0
	}
	t.schedule(now, state, rescan)
}

// wait is how long the row can be left alone: until the next look, where nothing
// is under way whose end will wake it.
func (t *target) wait(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run != nil || t.look != nil {
		return 0
	}
	return max(t.next.Sub(now), time.Millisecond)
}
