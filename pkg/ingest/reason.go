package ingest

import (
	"net/http"
	"time"

	"cellcast.io/cellcast/pkg/podidentity"
)

// Reason is why a post wasn't taken: one of those below, or of podidentity's. The
// set is closed, so a metric may be labelled with it.
type Reason string

// The reasons of ingest's own. There are no others.
const (
	// ReasonSourceRateLimited: its address posts too much.
	ReasonSourceRateLimited Reason = "SourceRateLimited"
	// ReasonTargetRateLimited: too many tokens are shown for the pods of the
	// target.
	ReasonTargetRateLimited Reason = "TargetRateLimited"
	// ReasonTotalRateLimited: too many tokens are shown.
	ReasonTotalRateLimited Reason = "TotalRateLimited"
	// ReasonNoToken: it doesn't have one bearer token of at most 16 KiB.
	ReasonNoToken Reason = "NoToken"
	// ReasonTooLarge: the artifact is larger than its kind may be.
	ReasonTooLarge Reason = "TooLarge"
	// ReasonUnknownPod: the hub has recorded no pod of that name.
	ReasonUnknownPod Reason = "UnknownPod"
	// ReasonOtherPod: the token is another pod's, perhaps of the same name.
	ReasonOtherPod Reason = "OtherPod"
	// ReasonNotRecorded: the token is good, and the pod's UID isn't recorded yet.
	ReasonNotRecorded Reason = "NotRecorded"
	// ReasonUnprovable: the target's row says too little for its pods to be proven.
	ReasonUnprovable Reason = "Unprovable"
	// ReasonInterrupted: whoever posted was too slow, or has gone.
	ReasonInterrupted Reason = "Interrupted"
)

// Reasons are all of them, podidentity's too.
func Reasons() []Reason {
	all := []Reason{ReasonSourceRateLimited, ReasonTargetRateLimited, ReasonTotalRateLimited, ReasonNoToken, ReasonTooLarge,
		ReasonUnknownPod, ReasonOtherPod, ReasonNotRecorded, ReasonUnprovable, ReasonInterrupted}
	for _, reason := range podidentity.Reasons() {
		all = append(all, Reason(reason))
	}
	return all
}

// How long a pod is to wait before it tries again: for what a moment cures, and
// for a target, or a part of the hub, that is away.
const (
	soon = time.Second
	away = 5 * time.Second
)

// answer is what whoever posted reads.
type answer struct {
	code  int
	text  string
	retry time.Duration // 0 where trying again is no use
}

func later(retry time.Duration) answer {
	return answer{http.StatusServiceUnavailable, "not now: try again later", retry}
}

// answer says nothing of the token but that it isn't accepted.
func (r Reason) answer() answer {
	tooMany := answer{http.StatusTooManyRequests, "too many posts: try again later", soon}
	rejected := answer{code: http.StatusUnauthorized, text: "the token isn't accepted"}
	switch r {
	case ReasonSourceRateLimited, ReasonTargetRateLimited, ReasonTotalRateLimited, Reason(podidentity.ReasonRateLimited):
		return tooMany
	case ReasonTooLarge:
		return answer{code: http.StatusRequestEntityTooLarge, text: "the artifact is too large"}
	case ReasonInterrupted:
		return answer{code: http.StatusRequestTimeout, text: "the post didn't come in time"}
	case ReasonNotRecorded:
		return later(soon)
	case ReasonUnprovable:
		return later(away)
	case ReasonNoToken, ReasonUnknownPod, ReasonOtherPod:
		return rejected
	default:
		if podidentity.Reason(r).MayClear() {
			return later(away)
		}
		return rejected
	}
}

// rejects reports whether the token was judged, and is no good.
func (r Reason) rejects() bool { return r.answer().code == http.StatusUnauthorized }
