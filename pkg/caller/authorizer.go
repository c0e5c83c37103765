package caller

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	cellcast "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// Authorizer decides about reports of capacity and about the relay, by the
// class of the caller:
//
//   - A reporter may create cells/capacity of its own cell, and a peer may post
//     to the relay. RBAC is not asked, and nothing else is allowed.
//   - Nobody else may, an administrator included: whoever writes capacity
//     steers where everybody deploys.
//
// About everything else it has no opinion. It must come before authorizers
// that allow, such as the one for system:masters.
func Authorizer() authorizer.Authorizer { return authorizer.AuthorizerFunc(authorize) }

func authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	id := From(a.GetUser())
	onCapacity := a.IsResourceRequest() && a.GetAPIGroup() == cellcast.GroupName &&
		a.GetResource() == capacityResource && a.GetSubresource() == capacitySubresource
	onRelay := !a.IsResourceRequest() && strings.HasPrefix(a.GetPath(), relayPrefix)
	switch id.Class {
	case ClassReporter:
		if onCapacity && a.GetVerb() == "create" && a.GetName() == id.Cell && id.Cell != "" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionDeny, fmt.Sprintf("the reporter of cell %q may report the capacity of that cell and nothing else", id.Cell), nil
	case ClassPeer:
		if onRelay && a.GetPath() == RelayPath && a.GetVerb() == "post" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionDeny, "a replica of the hub may post to " + RelayPath + " and do nothing else", nil
	case ClassHubUser, ClassPipeline:
		if onRelay {
			return authorizer.DecisionDeny, "the relay is for replicas of the hub, and for nobody else", nil
		}
		if onCapacity {
			return authorizer.DecisionDeny, "capacity is reported by the reporter that the Cluster names, and by nobody else", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	default:
		return authorizer.DecisionDeny, "the request carries no identity", nil
	}
}
