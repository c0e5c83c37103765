package clustertarget

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// owner keeps a row in the hands of its owner: what the owner must cover is the
// spec and the label env, before the change and after it. assign-owner lifts
// that, but not the rule that there is an owner, whose members somebody chose.
//
// Owners are users and groups of the whole hub, so the right to name them is asked
// for in every namespace, and of no one row: "*" in a Role, which whoever has a
// namespace may give themselves, doesn't give it.
func (r rules) owner(ctx context.Context, c change) (field.ErrorList, error) {
	wrong := c.uncovered()
	if len(wrong) > 0 {
		assigns, err := r.access.Allowed(ctx, c.user, authorizationv1.ResourceAttributes{
			Verb: registry.VerbAssignOwner, Group: registry.GroupName, Version: registry.SchemeGroupVersion.Version,
			Resource: "clustertargets",
		})
		if err != nil {
			return nil, err
		}
		if !assigns {
			return wrong, nil
		}
	}
	if c.old != nil && c.sameSpec() {
		return nil, nil
	}
	path, owner := field.NewPath("spec", "owner"), c.row.Spec.Owner
	switch {
	case owner == registry.TargetOwner{}:
		return field.ErrorList{field.Required(path, "name the user or the group that owns the target")}, nil
	case strings.HasPrefix(owner.Group, "system:"), strings.HasPrefix(owner.Group, "cellcast.io:"):
		return field.ErrorList{field.Forbidden(path.Child("group"), "a system: group has members that nobody chose")}, nil
	}
	return nil, nil
}

// uncovered are the fields that the user changes though the owner doesn't cover
// the user.
func (c change) uncovered() field.ErrorList {
	const instead = "; whoever has the verb " + registry.VerbAssignOwner + " on clustertargets by a ClusterRoleBinding may"
	spec := field.NewPath("spec")
	after := c.covered(c.row)
	if c.old == nil {
		if after || c.row.Spec.Owner == (registry.TargetOwner{}) { // which has an error of its own
			return nil
		}
		return field.ErrorList{field.Forbidden(spec.Child("owner"), "must be you, or a group that you are in"+instead+" name anybody")}
	}
	before := c.covered(c.old)
	var errs field.ErrorList
	if c.row.Spec.Owner != c.old.Spec.Owner && (!before || !after) {
		errs = append(errs, field.Forbidden(spec.Child("owner"), "old and new owner must both be you, or a group that you are in"+instead+" name anybody"))
	} else if !c.sameSpec() && !before {
		errs = append(errs, field.Forbidden(spec, "is for the owner to change, and that is neither you nor a group that you are in"+instead+" change it too"))
	}
	if c.row.Labels[registry.LabelEnv] != c.old.Labels[registry.LabelEnv] && !before {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "labels").Key(registry.LabelEnv),
			"sets how long credentials live, so it is for the owner to change, and that is neither you nor a group that you are in"+instead+" change it too"))
	}
	return errs
}

func (c change) covered(row *registry.ClusterTarget) bool {
	return row.Spec.Owner.Covers(c.user.Username, c.user.Groups)
}

func (c change) sameSpec() bool { return equality.Semantic.DeepEqual(c.old.Spec, c.row.Spec) }
