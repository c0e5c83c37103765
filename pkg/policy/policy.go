// Package policy decides which PlacementPolicy governs a caller, and says why
// the others don't. It is pure: callers and policies in, an answer out, with no
// client, no clock and nothing kept. The same Compile serves the admission
// webhook, the controller and the path of a request, so what one of them
// accepts none of the others reads differently.
//
// A caller that no policy matches is refused; there is no default. Of several
// that match, the one with the most constraints governs, alone.
package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
)

// Policy is a compiled PlacementPolicy. It comes from Compiler.Compile, is not
// changed afterwards, and may be used by several goroutines at once. The zero
// value matches no caller.
type Policy struct {
	// Name is the name of the PlacementPolicy.
	Name string
	// Strategy is never empty.
	Strategy registry.Strategy
	// AllowDark permits placements that ask for a dark cell.
	AllowDark bool
	// AllowCellSelection permits the caller to name the cell.
	AllowCellSelection bool
	// Selector selects the permitted cells by the labels of their Cluster.
	Selector labels.Selector
	// TokenTTL is what the policy sets of a credential's life; zero is unset.
	TokenTTL TTL

	subjects  []subject // the most constraints first
	workloads workloads
	scope     Scope // the Namespace is empty where an expression computes it
	namespace *expression
}

// Scope is what a credential may do: it is a token of one ServiceAccount of
// the chosen cell.
type Scope struct {
	// Namespace is the ServiceAccount's, a DNS label.
	Namespace string
	// ServiceAccountName is a DNS subdomain.
	ServiceAccountName string
	// Audiences are what the token is good for; empty means the API server of
	// the cell.
	Audiences []string
	// Revocable says that the credential is bound to a Secret, and ends with it.
	Revocable bool
}

// Scope returns the scope of the credential that the policy gives this caller
// for this workload. It doesn't check that the policy governs them: that is
// Set.Govern.
//
// It refuses when spec.credential.namespaceExpression fails or yields no DNS
// label. The code is NoPolicy: the policy has no scope for this caller, which
// no field of the request can put right, no retry either, and for which the
// caller needs whoever writes the policies. The message doesn't repeat what
// the expression yielded, which may hold claims; the cause, for the log, does.
func (p *Policy) Scope(c Caller, workload string) (Scope, *refusal.Refusal) {
	scope := p.scope
	scope.Audiences = slices.Clone(p.scope.Audiences)
	if p.namespace == nil {
		return scope, nil
	}
	namespace, err := p.namespace.yield(&variables{workload: workload}, &c)
	if err != nil {
		return Scope{}, refusal.New(refusal.NoPolicy,
			"policy %q governs %s and can't compute a namespace for it: namespaceExpression fails on workload %s; "+
				"ask the platform team to correct the policy", p.Name, c, quote(workload)).Because(err)
	}
	if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 {
		return Scope{}, refusal.New(refusal.NoPolicy,
			"policy %q governs %s and computes no valid namespace for it: what namespaceExpression yields on workload %s "+
				"is not a DNS label (at most 63 lower-case letters, digits and '-', with a letter or digit at both ends); "+
				"ask the platform team to correct the policy", p.Name, c, quote(workload)).Because(notANamespace(namespace))
	}
	scope.Namespace = namespace
	return scope, nil
}

// notANamespace is what an expression yielded in place of a namespace.
type notANamespace string

func (n notANamespace) Error() string { return "namespaceExpression yields " + quote(string(n)) }

// Issuers returns the issuers that the policy names, sorted, each once. It is
// empty for a policy that is for hub users alone.
func (p *Policy) Issuers() []string {
	var issuers []string
	for i := range p.subjects {
		if issuer := p.subjects[i].issuer; issuer != "" {
			issuers = append(issuers, issuer)
		}
	}
	slices.Sort(issuers)
	return slices.Compact(issuers)
}
