package caller

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	cellcast "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// Authorizer decides about reports of capacity, by the class of the caller:
//
//   - A reporter may create cells/capacity of its own cell. RBAC is not asked,
//     and nothing else is allowed.
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
	switch id.Class {
	case ClassReporter:
		if onCapacity && a.GetVerb() == "create" && a.GetName() == id.Cell && id.Cell != "" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionDeny, fmt.Sprintf("the reporter of cell %q may report the capacity of that cell and nothing else", id.Cell), nil
	case ClassHubUser, ClassPipeline:
		if onCapacity {
			return authorizer.DecisionDeny, "capacity is reported by the reporter that the Cluster names, and by nobody else", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	default:
		return authorizer.DecisionDeny, "the request carries no identity", nil
	}
}
