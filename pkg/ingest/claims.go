package ingest

import (
	"errors"
	"time"

	"github.com/go-jose/go-jose/v4/json"
	"k8s.io/apimachinery/pkg/types"

	"cellcast.io/cellcast/pkg/keyset"
	"cellcast.io/cellcast/pkg/podidentity"
)

// claims are what a token says of itself. Nothing is accepted on them: they turn
// away what isn't worth a check.
type claims struct {
	Expiry     *keyset.Date `json:"exp"`
	Kubernetes struct {
		Pod struct {
			Name string    `json:"name"`
			UID  types.UID `json:"uid"`
		} `json:"pod"`
	} `json:"kubernetes.io"`
}

// claimsOf returns the claims of a token that nobody has checked.
func claimsOf(token string) (claims, Reason) {
	var c claims
	payload, err := keyset.Unverified(token)
	switch {
	case errors.Is(err, keyset.ErrAlgorithm):
		return c, Reason(podidentity.ReasonAlgorithm)
	case errors.Is(err, keyset.ErrSignature):
		return c, Reason(podidentity.ReasonSignature)
	case err != nil || json.Unmarshal(payload, &c) != nil:
		return c, Reason(podidentity.ReasonMalformed)
	}
	return c, ""
}

// of says whether a token with the claims can be the pod's. The UID is random:
// who isn't on the target can't name it, and so can't have anything checked.
func (c claims) of(name string, uid types.UID) Reason {
	pod := c.Kubernetes.Pod
	switch {
	case pod.Name == "" || pod.UID == "":
		return Reason(podidentity.ReasonNoPod)
	case pod.Name != name, uid != "" && pod.UID != uid:
		return ReasonOtherPod
	}
	return ""
}

// left is how long the token lives on: less by the last instant, for which a
// cache still holds what ends.
func (c claims) left(now time.Time) time.Duration {
	if c.Expiry == nil {
		return 0
	}
	return c.Expiry.Sub(now) - 1
}
