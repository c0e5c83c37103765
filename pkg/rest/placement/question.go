package placement

import (
	"time"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/placement"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/rest/credential"
)

// question is what was asked, as the engine and the issuer understand it.
type question struct {
	request  placement.Request
	ttl      time.Duration
	delivery credential.Delivery
}

// parse reads the question.
func parse(spec cellcastv1alpha1.PlacementSpec) (question, *refusal.Refusal) {
	if refused := policy.ParseWorkload(spec.Workload); refused != nil {
		return question{}, refused
	}
	ttl, refused := policy.ParseTTL(spec.TTL)
	if refused != nil {
		return question{}, refused
	}
	resources, refused := capacity.ParseAmounts("spec.resources", spec.Resources)
	if refused != nil {
		return question{}, refused
	}
	delivery, refused := credential.ParseDelivery(spec.Recipient, spec.RevocationNonce)
	if refused != nil {
		return question{}, refused
	}
	request := placement.Request{Workload: spec.Workload, Dark: spec.Dark, Resources: resources}
	return question{request, ttl, delivery}, nil
}
