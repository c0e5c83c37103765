package cluster

import (
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// reporter checks that the identity named could be one at all: it's compared
// literally, so a space too many would silence a cell.
func reporter(r *registry.ClusterReporter, others []*registry.Cluster, path *field.Path) (field.ErrorList, []string) {
	if r == nil {
		return nil, []string{fmt.Sprintf("%s is unset: nobody may report for the cell, so it stays Unknown and takes no placement", path)}
	}
	var errs field.ErrorList
	if hasSpace(r.Issuer) {
		errs = append(errs, invalid(path.Child("issuer"), "must have no white space: it's compared literally"))
	}
	if hasSpace(r.Subject) {
		errs = append(errs, invalid(path.Child("subject"), "must have no white space: it's compared literally"))
	}
	if !isServiceAccount(r.Subject) {
		errs = append(errs, invalid(path.Child("subject"),
			"must be system:serviceaccount:<namespace>:<name>: an agent reports with the token of its ServiceAccount"))
	}
	if r.Keys != registry.ReporterKeysDiscovery {
		return errs, nil
	}
	_, wrong := bareHTTPS(r.Issuer, path.Child("issuer"))
	return append(errs, wrong...), sharedReporter(r, others, path)
}

// sharedReporter warns of cells that one agent could report for. With
// keys: Cell there are none, for each cell has its own keys.
func sharedReporter(r *registry.ClusterReporter, others []*registry.Cluster, path *field.Path) []string {
	var warnings []string
	for _, other := range others {
		o := other.Spec.Reporter
		if o != nil && o.Keys == registry.ReporterKeysDiscovery && o.Issuer == r.Issuer && o.Subject == r.Subject {
			warnings = append(warnings, fmt.Sprintf(
				"%s is also that of the Cluster %q: with keys: Discovery the agent of either can report for both", path, other.Name))
		}
	}
	return warnings
}

func isServiceAccount(subject string) bool {
	account, is := strings.CutPrefix(subject, "system:serviceaccount:")
	namespace, name, _ := strings.Cut(account, ":")
	return is && namespace != "" && name != "" && !strings.Contains(name, ":")
}

func hasSpace(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) >= 0
}
