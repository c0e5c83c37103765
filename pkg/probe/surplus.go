package probe

import (
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/probe/contract"
)

// The bounds of what is gone through. A rule stands for each verb on each resource
// of each group: a list of 1 MiB can stand for millions of rights.
const (
	maxSteps   = 1 << 14
	maxSurplus = 512 // resources that are told apart
	maxVerbs   = 32  // of one of them
	maxNames   = 256 // of the objects of a rule that are compared
)

// surplus is what a credential may do beyond the contract.
type surplus struct {
	rights     map[string]map[string]bool // verbs, by what they're on
	everything bool                       // that it's all verbs on all resources
	cut        bool                       // that the list was too long to go through
	steps      int
	quoted     map[string]string // texts as they may be repeated
}

// surplusOf goes through the rights that an API server lists.
func surplusOf(rules authorizationv1.SubjectRulesReviewStatus, allowed []contract.Right) surplus {
	s := surplus{rights: map[string]map[string]bool{}, quoted: map[string]string{}}
	for _, rule := range rules.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				s.resource(rule, group, resource, allowed)
				if s.cut {
					return s
				}
			}
		}
	}
	for _, rule := range rules.NonResourceRules {
		for _, path := range rule.NonResourceURLs {
			s.path(rule, path)
			if s.cut {
				return s
			}
		}
	}
	return s
}

func (s *surplus) resource(rule authorizationv1.ResourceRule, group, resource string, allowed []contract.Right) {
	names := rule.ResourceNames[:min(len(rule.ResourceNames), maxNames)]
	covered := func(verb string) bool {
		return len(names) == len(rule.ResourceNames) &&
			slices.ContainsFunc(allowed, func(r contract.Right) bool { return r.Covers(verb, group, resource, names) })
	}
	on := ""
	s.step()
	for _, verb := range rule.Verbs {
		if s.step(); s.cut {
			return
		}
		if covered(verb) {
			continue
		}
		s.everything = s.everything || verb == "*" && group == "*" && resource == "*" && len(names) == 0
		if on == "" {
			on = s.object(group, resource, names)
		}
		s.add(verb, on)
	}
}

func (s *surplus) path(rule authorizationv1.NonResourceRule, path string) {
	s.step()
	for _, verb := range rule.Verbs {
		if s.step(); s.cut {
			return
		}
		if !allowedPath(verb, path) {
			s.add(verb, s.quote(path))
		}
	}
}

func (s *surplus) step() {
	s.steps++
	s.cut = s.cut || s.steps > maxSteps || len(s.rights) >= maxSurplus
}

func (s *surplus) add(verb, on string) {
	if s.rights[on] == nil {
		s.rights[on] = map[string]bool{}
	}
	if len(s.rights[on]) < maxVerbs {
		s.rights[on][s.quote(verb)] = true
	}
}

// quote is the function quote, which a text pays for once: a rule of a few long ones
// stands for thousands of rights.
func (s *surplus) quote(text string) string {
	text = text[:min(len(text), 2*maxQuote)]
	quoted, known := s.quoted[text]
	if !known {
		quoted = quote(text)
		s.quoted[text] = quoted
	}
	return quoted
}

// object is what a rule is about: *.*, secrets, deployments.apps web.
func (s *surplus) object(group, resource string, names []string) string {
	words := []string{contract.On(s.quote(group), s.quote(resource))}
	for _, name := range names[:min(len(names), 8)] {
		words = append(words, s.quote(name))
	}
	if len(names) > 8 {
		words = append(words, "…")
	}
	return cut(strings.Join(words, " "), maxQuote)
}

// items are one for all verbs on a resource.
func (s *surplus) items() []registryv1alpha1.TargetCheckItem {
	var items []registryv1alpha1.TargetCheckItem
	for _, on := range slices.Sorted(maps.Keys(s.rights)) {
		verbs := slices.Sorted(maps.Keys(s.rights[on]))
		if s.rights[on]["*"] {
			verbs = []string{"*"}
		}
		items = append(items, registryv1alpha1.TargetCheckItem{
			Name: strings.Join(verbs, ", ") + " on " + on, Result: registryv1alpha1.CheckWarning,
		})
	}
	return items
}
