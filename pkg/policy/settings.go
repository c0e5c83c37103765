package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/cel-go/cel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/revocation"
)

// setSelector reads spec.clusterSelector.
func (p *Policy) setSelector(in *metav1.LabelSelector, path *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabelSelector(in, metavalidation.LabelSelectorValidationOptions{}, path)
	if len(errs) > 0 {
		return errs
	}
	selector, err := metav1.LabelSelectorAsSelector(in)
	if err != nil {
		return field.ErrorList{field.Invalid(path, metav1.FormatLabelSelector(in), fmt.Sprintf("is not a label selector: %v", err))}
	}
	p.Selector = selector
	return nil
}

// setStrategy reads spec.strategy; unset is LeastLoaded.
func (p *Policy) setStrategy(in registry.Strategy, path *field.Path) field.ErrorList {
	switch in {
	case "":
		p.Strategy = registry.StrategyLeastLoaded
	case registry.StrategyLeastLoaded, registry.StrategyRoundRobin, registry.StrategySticky:
		p.Strategy = in
	default:
		return field.ErrorList{field.NotSupported(path, in, []registry.Strategy{
			registry.StrategyLeastLoaded, registry.StrategyRoundRobin, registry.StrategySticky})}
	}
	return nil
}

// setTTL reads spec.tokenTTL.
func (p *Policy) setTTL(in *registry.TokenTTL, revocable bool, path *field.Path) field.ErrorList {
	if in == nil {
		return nil
	}
	var errs field.ErrorList
	read := func(d *metav1.Duration, path *field.Path) time.Duration {
		if d == nil {
			return 0
		}
		switch {
		case revocable && d.Duration < revocation.MinTTL:
			errs = append(errs, field.Invalid(path, d.Duration.String(),
				fmt.Sprintf("must be at least %s, in which an agent can still be trusted to end a credential", revocation.MinTTL)))
		case !revocable && d.Duration < Floor:
			errs = append(errs, field.Invalid(path, d.Duration.String(),
				fmt.Sprintf("must be at least %s, the least that Kubernetes issues a token for, unless credential.revocable is set", Floor)))
		}
		return d.Duration
	}
	p.TokenTTL = TTL{Default: read(in.Default, path.Child("default")), Max: read(in.Max, path.Child("max"))}
	if in.Default != nil && in.Max != nil && in.Default.Duration > in.Max.Duration {
		errs = append(errs, field.Invalid(path.Child("default"), in.Default.Duration.String(),
			fmt.Sprintf("must not be longer than max, which is %s", in.Max.Duration)))
	}
	return errs
}

// setScope reads spec.credential.
func (c *Compiler) setScope(p *Policy, in *registry.CredentialScope, path *field.Path) field.ErrorList {
	errs := c.setNamespace(p, in, path)
	errs = append(errs, checkFormat(in.ServiceAccountName, validation.IsDNS1123Subdomain, path.Child("serviceAccountName"),
		"name the ServiceAccount on the cells that the credential is for")...)
	errs = append(errs, checkNames(in.Audiences, path.Child("audiences"))...)
	p.scope.ServiceAccountName = in.ServiceAccountName
	p.scope.Audiences = slices.Clone(in.Audiences)
	p.scope.Revocable = in.Revocable
	if in.Revocable && len(in.Audiences) > 0 {
		errs = append(errs, field.Forbidden(path.Child("audiences"),
			"a revocable credential is for the cell's API server alone: whoever else accepts a token doesn't notice that it was revoked; leave audiences out, or revocable"))
	}
	return errs
}

func (c *Compiler) setNamespace(p *Policy, in *registry.CredentialScope, path *field.Path) field.ErrorList {
	switch {
	case in.Namespace != "" && in.NamespaceExpression != "":
		return field.ErrorList{field.Forbidden(path.Child("namespaceExpression"), "set either namespace or namespaceExpression, not both")}
	case in.NamespaceExpression != "":
		compiled, err := compileExpression(c.scope, in.NamespaceExpression, cel.StringType)
		if err != nil {
			return field.ErrorList{field.Invalid(path.Child("namespaceExpression"), in.NamespaceExpression, err.Error())}
		}
		p.namespace = compiled
		return nil
	default:
		p.scope.Namespace = in.Namespace
		return checkFormat(in.Namespace, validation.IsDNS1123Label, path.Child("namespace"),
			"set namespace, or namespaceExpression where each caller has its own")
	}
}
