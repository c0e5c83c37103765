package policy

import (
	"cmp"
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// maxSubjects is how many subjects a policy has at most.
const maxSubjects = 64

// Compile reads a PlacementPolicy once, so that a decision only compares. It
// returns either a policy or every error, with the path of the field and what
// to do about it.
//
// It trusts nothing that the CRD's schema checks: an object that came past the
// schema gives an error, never a policy that is wider than what was written.
func (c *Compiler) Compile(p *registry.PlacementPolicy) (*Policy, field.ErrorList) {
	spec, path := &p.Spec, field.NewPath("spec")
	out := &Policy{
		Name:               p.Name,
		AllowDark:          spec.AllowDark,
		AllowCellSelection: spec.AllowCellSelection,
	}
	errs := slices.Concat(
		c.setSubjects(out, spec.Subjects, path.Child("subjects")),
		out.setWorkloads(spec.Workloads, path.Child("workloads")),
		out.setSelector(&spec.ClusterSelector, path.Child("clusterSelector")),
		out.setStrategy(spec.Strategy, path.Child("strategy")),
		out.setTTL(spec.TokenTTL, spec.Credential.Revocable, path.Child("tokenTTL")),
		c.setScope(out, &spec.Credential, path.Child("credential")),
	)
	if len(errs) > 0 {
		return nil, errs
	}
	return out, nil
}

// setSubjects reads spec.subjects, and sorts those with the most constraints
// first.
func (c *Compiler) setSubjects(p *Policy, in []registry.PolicySubject, path *field.Path) field.ErrorList {
	switch {
	case len(in) == 0:
		return field.ErrorList{field.Required(path, "name at least one subject: a policy without any is for nobody")}
	case len(in) > maxSubjects:
		return field.ErrorList{field.TooMany(path, len(in), maxSubjects)}
	}
	var errs field.ErrorList
	for i := range in {
		s, wrong := c.compileSubject(&in[i], path.Index(i))
		s.index = i
		p.subjects, errs = append(p.subjects, s), append(errs, wrong...)
	}
	slices.SortStableFunc(p.subjects, func(a, b subject) int { return cmp.Compare(b.specificity, a.specificity) })
	return errs
}

func (c *Compiler) compileSubject(in *registry.PolicySubject, path *field.Path) (subject, field.ErrorList) {
	out := subject{issuer: in.Issuer, subject: in.Subject, users: slices.Clone(in.Users), groups: slices.Clone(in.Groups)}
	errs := checkKinds(in, path)
	for _, name := range slices.Sorted(maps.Keys(in.Claims)) {
		if name == "" {
			errs = append(errs, field.Invalid(path.Child("claims"), name, "must have the name of a claim before each value"))
		}
		out.claims = append(out.claims, claim{name: name, value: string(in.Claims[name])})
	}
	errs = append(errs, checkNames(in.Users, path.Child("users"))...)
	errs = append(errs, checkNames(in.Groups, path.Child("groups"))...)
	for i, account := range in.ServiceAccounts {
		errs = append(errs, checkServiceAccount(account, path.Child("serviceAccounts").Index(i))...)
		out.serviceAccounts = append(out.serviceAccounts, serviceAccountUser+account.Namespace+":"+account.Name)
	}
	if in.Expression != "" {
		compiled, err := compileExpression(c.caller, in.Expression, cel.BoolType)
		if err != nil {
			errs = append(errs, field.Invalid(path.Child("expression"), in.Expression, err.Error()))
		}
		out.expression = compiled
	}
	out.specificity = out.countConstraints()
	return out, errs
}

// checkKinds checks which constraints stand together.
func checkKinds(in *registry.PolicySubject, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	forHubUsers := len(in.Users)+len(in.Groups)+len(in.ServiceAccounts) > 0
	ofToken := in.Issuer != "" || in.Subject != "" || len(in.Claims) > 0
	if !forHubUsers && !ofToken && in.Expression == "" {
		errs = append(errs, field.Required(path, "must have at least one constraint: a subject without any would match every caller"))
	}
	if in.Issuer == "" && (in.Subject != "" || len(in.Claims) > 0) {
		errs = append(errs, field.Required(path.Child("issuer"), "name the issuer beside subject and claims: claims of different issuers mean different things"))
	}
	if forHubUsers && ofToken {
		errs = append(errs, field.Forbidden(path, "issuer, subject and claims are for pipelines; users, groups and serviceAccounts are for callers of the hub's own: use two subjects"))
	}
	return errs
}

func checkNames(names []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		if name == "" {
			errs = append(errs, field.Required(path.Index(i), "write the name, or leave the entry out"))
		}
	}
	return errs
}

func checkServiceAccount(account registry.ServiceAccountReference, path *field.Path) field.ErrorList {
	errs := checkFormat(account.Namespace, validation.IsDNS1123Label, path.Child("namespace"), "write the ServiceAccount's namespace")
	return append(errs, checkFormat(account.Name, validation.IsDNS1123Subdomain, path.Child("name"), "write the ServiceAccount's name")...)
}

func checkFormat(value string, rule func(string) []string, path *field.Path, required string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, required)}
	}
	var errs field.ErrorList
	for _, wrong := range rule(value) {
		errs = append(errs, field.Invalid(path, value, wrong))
	}
	return errs
}
