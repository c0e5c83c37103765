package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"k8s.io/klog/v2"

	"cellcast.io/cellcast/pkg/podidentity"
)

const (
	// rejectFor is how long a token that was checked in vain isn't checked again.
	rejectFor = 10 * time.Second
	// acceptFor is how long a good token isn't checked again.
	acceptFor = time.Minute
	// suspectFor is how long somebody is suspected who has shown a token in vain, and
	// suspectShare what part of a target's checks all who are suspected share.
	suspectFor   = time.Minute
	suspectShare = 0.25
	// checkPatience bounds one check. With a body and a receiver that take all
	// their time too, a post ends within the 30 s that the listener gives it.
	checkPatience = 12 * time.Second
)

// suspicion is of a source, or, where sources aren't told apart, of whoever shows
// tokens for a pod. It's by one target, and doesn't reach the others.
type suspicion struct {
	target podidentity.Target
	source netip.Prefix
	pod    string
}

func (h *Handler) suspicion(p *post) suspicion {
	target := p.expected.Registration.Target
	if h.sources.limit == 0 {
		return suspicion{target: target, pod: p.name}
	}
	return suspicion{target: target, source: p.source}
}

// identify says why the token isn't the pod's, and nothing when it is. A token
// for a pod that isn't known is read as any other is, for the time that takes.
func (h *Handler) identify(ctx context.Context, p *post, token string) Reason {
	key := fingerprint(p, token)
	if reason, known := h.known(key); known {
		return reason
	}
	c, reason := claimsOf(token)
	if reason == "" {
		reason = c.of(p.name, p.expected.UID)
	}
	switch {
	case !p.known:
		return ReasonUnknownPod
	case reason != "":
		return reason
	}
	// One check serves all who show the token, and no one's departure ends it.
	flight := h.flights.DoChan(string(key[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkPatience)
		defer cancel()
		return h.check(ctx, p, token, key, c), nil
	})
	select {
	case <-ctx.Done():
		return ReasonInterrupted
	case result := <-flight:
		return result.Val.(Reason)
	}
}

// fingerprint is what a verdict is kept by: the token, and all that it was judged
// by. When the pod's UID is recorded, or its target changes, no old verdict holds.
func fingerprint(p *post, token string) [sha256.Size]byte {
	hash := sha256.New()
	r := p.expected.Registration
	for _, part := range []string{token, p.name, string(p.expected.UID), string(r.Target.UID), string(r.Target.Mode),
		r.Endpoint, r.CABundle, r.Issuer, r.Audience, r.Namespace, r.ServiceAccount} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// known is a verdict that still holds.
func (h *Handler) known(key [sha256.Size]byte) (Reason, bool) {
	if at, ok := h.accepted.Get(key); ok && h.clock.Since(at.(time.Time)) < acceptFor {
		return "", true
	}
	if reason, ok := h.rejected.Get(key); ok {
		return reason.(Reason), true
	}
	return "", false
}

// check asks the validator, where the rates allow it, and remembers a verdict.
// Another check may have ended since the post looked. A token that was accepted
// before is checked at any rate: once in a minute.
func (h *Handler) check(ctx context.Context, p *post, token string, key [sha256.Size]byte, c claims) Reason {
	if reason, known := h.known(key); known {
		return reason
	}
	if _, again := h.accepted.Get(key); !again {
		if reason := h.ration(p); reason != "" {
			return reason
		}
	}
	reason := h.verdict(ctx, p, token)
	switch now := h.clock.Now(); {
	case reason == "":
		h.accepted.Add(key, now, c.left(now))
	case reason.rejects():
		h.accepted.Remove(key)
		h.rejected.Add(key, reason, rejectFor)
		h.suspects.Add(h.suspicion(p), nil, suspectFor)
	}
	return reason
}

// ration takes one check from the target's share and one from the total. Who has
// shown the target junk has another share, so that a pod's first post finds some
// left.
func (h *Handler) ration(p *post) Reason {
	share, now := h.clean, h.clock.Now()
	if _, ok := h.suspects.Get(h.suspicion(p)); ok {
		share = h.suspect
	}
	switch {
	case !share.allow(p.expected.Registration.Target, now):
		return ReasonTargetRateLimited
	case !h.total.allow(nil, now):
		return ReasonTotalRateLimited
	}
	return ""
}

// verdict is the validator's, on the pod that the hub has recorded. A token that
// is good for a pod without recorded UID is the only one that's told to wait.
func (h *Handler) verdict(ctx context.Context, p *post, token string) Reason {
	validator, err := h.validators.For(p.expected.Registration)
	if err != nil {
		h.uncheckable.Do(func() {
			klog.Background().Error(err, "The pods of a target can't be proven", "target", p.expected.Target)
		})
		return ReasonUnprovable
	}
	pod, err := validator.Validate(ctx, token)
	switch failure, judged := errors.AsType[*podidentity.Failure](err); {
	case err != nil && !judged:
		h.complain(err, p)
		return Reason(podidentity.ReasonKeysUnavailable)
	case err != nil:
		if failure.Reason.MayClear() {
			h.complain(err, p)
		}
		return Reason(failure.Reason)
	case p.expected.UID == "" && pod.Name == p.name:
		return ReasonNotRecorded
	case pod != p.pod():
		return ReasonOtherPod
	}
	return ""
}

func (h *Handler) complain(err error, p *post) {
	h.uncheckable.Do(func() {
		klog.Background().Error(err, "A pod's token can't be checked", "target", p.expected.Target)
	})
}

// pod is whose the token must be.
func (p *post) pod() podidentity.Pod {
	r := p.expected.Registration
	return podidentity.Pod{Namespace: r.Namespace, ServiceAccount: r.ServiceAccount, Name: p.name, UID: p.expected.UID, Target: r.Target}
}
