// Package ingest takes in what pods hand to the hub. It stands on the internet,
// and serves POST /api/pods/{pod}/artifacts/{kind} and nothing else.
//
// A pod shows its own projected token. The handler promises:
//
//   - Nothing is taken but from the pod that the hub has recorded under that
//     name, on that target, with that UID.
//   - A refusal doesn't say why, and not whether there is such a pod: the answer
//     is the same, after the same work. The reason is in the audit trail.
//   - Checks run from cheap to costly, so that junk ends at the cheap ones. A
//     token that doesn't name the recorded pod by its UID, which no stranger can
//     guess, takes nothing from any rate but its source's, and makes the hub ask
//     nobody.
//   - What a target is asked is bounded for each target and in total, and who has
//     shown a target junk lately shares a part of its bound with others who have.
//   - A token that was accepted needs no check for a minute, and then takes it from
//     no bound, whatever else goes on.
//   - All that is kept has a bound, and is kept by a hash: no token is.
//
// What can't be judged now, such as a pod whose UID isn't recorded yet or whose
// cell is away, is 503 or 429 with Retry-After, and never a rejection.
package ingest

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/podidentity"
)

// Expected is a pod that the hub has recorded.
type Expected struct {
	// Registration is what holds for the pods of its target.
	Registration podidentity.Registration
	// UID is the pod's. It's empty from when the pod is named until it's created
	// and recorded.
	UID types.UID
	// Run is the run of the probe that it belongs to, if any.
	Run string
	// Target is the brought target, as target:<uid>.
	Target string
}

// Post is an artifact of a pod that has proved who it is.
type Post struct {
	Pod podidentity.Pod
	Expected
	Kind Kind
	Body []byte
	At   time.Time
}

// Pods knows the pods.
type Pods interface {
	// Pod returns the pod that the hub has recorded under the name. It's asked for
	// every post with a token, and strangers choose the names: it must answer from
	// memory.
	Pod(ctx context.Context, name string) (Expected, bool)
}

// Validators proves pods.
type Validators interface {
	// For returns what proves the pods of a registration.
	For(podidentity.Registration) (podidentity.Validator, error)
}

// Receiver is who the artifacts are for.
type Receiver interface {
	// Receive takes the artifact. It may be given one again that it has taken: the
	// pod posts until it reads a 204, and whoever runs it may post for ever. Then it
	// isn't news, and costs nothing. An error is a fault of the hub's.
	Receive(ctx context.Context, post Post) (news bool, err error)
}

// DefaultPerTarget is a rate of checks that a target's API hardly notices.
const DefaultPerTarget = 20

// Rates are the bounds on posts, each per second with a burst of twice as many.
// 0 is no bound.
type Rates struct {
	// PerSecond bounds the tokens that are checked, whoever shows them.
	PerSecond float64
	// PerSource bounds the posts of one address, or of one /64 of IPv6. Without it
	// addresses aren't told apart, for a proxy stands in front.
	PerSource float64
	// PerTarget bounds the tokens that are checked for the pods of one target.
	PerTarget float64
}

// Options are what the handler needs. All but Clock and Rates are required.
type Options struct {
	Pods       Pods
	Validators Validators
	Receiver   Receiver
	Audit      audit.Sink
	Rates      Rates
	// Clock tells the time; nil means the real one.
	Clock clock.PassiveClock
}

const (
	// maxSources, maxTargets and maxVerdicts are how many are remembered, those
	// used last.
	maxSources  = 8192
	maxTargets  = 4096
	maxVerdicts = 8192
	// complaints is the least time between two lines of one kind in the log.
	complaints = 10 * time.Second
)

// Handler is the handler. It's safe for use by many at once.
type Handler struct {
	pods       Pods
	validators Validators
	receiver   Receiver
	audit      audit.Sink
	clock      clock.PassiveClock

	sources *buckets // posts, by source
	clean   *buckets // checks, by target
	suspect *buckets // the same for who has shown the target junk
	total   *buckets // all checks

	accepted *cache.LRUExpireCache // time of the last check by fingerprint
	rejected *cache.LRUExpireCache // Reason by fingerprint
	suspects *cache.LRUExpireCache // by suspicion
	flights  singleflight.Group    // by fingerprint

	uncheckable, untaken rate.Sometimes
}

// New returns a handler that remembers nothing yet.
func New(o Options) *Handler {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Handler{
		pods: o.Pods, validators: o.Validators, receiver: o.Receiver, audit: o.Audit, clock: o.Clock,
		sources:     newBuckets(o.Rates.PerSource, maxSources),
		clean:       newBuckets(o.Rates.PerTarget*(1-suspectShare), maxTargets),
		suspect:     newBuckets(o.Rates.PerTarget*suspectShare, maxTargets),
		total:       newBuckets(o.Rates.PerSecond, 1),
		accepted:    cache.NewLRUExpireCacheWithClock(maxVerdicts, o.Clock),
		rejected:    cache.NewLRUExpireCacheWithClock(maxVerdicts, o.Clock),
		suspects:    cache.NewLRUExpireCacheWithClock(maxSources, o.Clock),
		uncheckable: rate.Sometimes{Interval: complaints},
		untaken:     rate.Sometimes{Interval: complaints},
	}
}

// post is one post on its way through the steps.
type post struct {
	began    time.Time
	name     string // of the pod
	kind     Kind
	source   netip.Prefix
	expected Expected
	known    bool
}

// ServeHTTP takes an artifact in, 204, or refuses.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	name, kind, ok := route(r.URL)
	switch {
	case !ok:
		deny(w, r, answer{code: http.StatusNotFound, text: "not found"})
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		deny(w, r, answer{code: http.StatusMethodNotAllowed, text: "only POST is served here"})
		return
	}
	p := &post{began: h.clock.Now(), name: name, kind: kind, source: source(r.RemoteAddr)}
	body, reason := h.admit(w, r, p)
	if reason != "" {
		h.refuse(w, r, p, reason)
		return
	}
	if err := h.hand(r.Context(), p, body); err != nil {
		deny(w, r, later(away))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// admit returns the body of a post that may be taken, or why it may not. The
// steps are in the order of what they cost.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request, p *post) ([]byte, Reason) {
	if !h.sources.allow(p.source, p.began) {
		return nil, ReasonSourceRateLimited
	}
	token, ok := bearer(r.Header)
	if !ok {
		return nil, ReasonNoToken
	}
	if r.ContentLength > p.kind.limit() {
		return nil, ReasonTooLarge
	}
	p.expected, p.known = h.pods.Pod(r.Context(), p.name)
	if reason := h.identify(r.Context(), p, token); reason != "" {
		return nil, reason
	}
	return read(w, r, p.kind.limit())
}
