package policy

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"cellcast.io/cellcast/pkg/refusal"
)

const (
	// maxWorkload is the length of a workload's name, in bytes.
	maxWorkload = 253
	// maxWorkloadQuoted is how much of a wrong name a refusal repeats, in bytes.
	maxWorkloadQuoted = 64

	workloadRule = "at most 253 lower-case letters, digits, '-', '.', '_' and '/', starting with a letter or digit"
)

// ParseWorkload refuses a name that isn't a workload's, as InvalidRequest on
// spec.workload.
func ParseWorkload(name string) *refusal.Refusal {
	const path = "spec.workload"
	switch {
	case name == "":
		return refusal.Invalid(path, "is required: name what is deployed, such as payments/api (%s)", workloadRule)
	case len(name) > maxWorkload:
		return refusal.Invalid(path, "%s is %d bytes long; a workload's name has %s",
			quoteAtMost(name, maxWorkloadQuoted), len(name), workloadRule)
	case !isWorkload(name):
		return refusal.Invalid(path, "%s is not a workload's name, which has %s",
			quoteAtMost(name, maxWorkloadQuoted), workloadRule)
	default:
		return nil
	}
}

// isWorkload reports whether the name is a workload's.
func isWorkload(name string) bool {
	if name == "" || len(name) > maxWorkload || !isLetterOrDigit(name[0]) {
		return false
	}
	for i := range len(name) {
		if b := name[i]; !isLetterOrDigit(b) && b != '-' && b != '.' && b != '_' && b != '/' {
			return false
		}
	}
	return true
}

func isLetterOrDigit(b byte) bool { return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' }

// workloads are the names that a policy is for. The zero value is for none.
type workloads struct {
	all      bool
	exact    map[string]bool
	prefixes []string
}

// setWorkloads reads spec.workloads. An entry that isn't a name, with or
// without a * at its end, is an error: a bare * would be a wildcard that
// doesn't look like leaving the field out.
func (p *Policy) setWorkloads(entries []string, path *field.Path) field.ErrorList {
	w := workloads{all: len(entries) == 0, exact: map[string]bool{}}
	var errs field.ErrorList
	for i, entry := range entries {
		prefix, isPrefix := strings.CutSuffix(entry, "*")
		switch {
		case !isWorkload(prefix):
			errs = append(errs, field.Invalid(path.Index(i), entry,
				"must be a workload's name ("+workloadRule+"), or the start of one followed by *; for every workload leave workloads out"))
		case isPrefix:
			w.prefixes = append(w.prefixes, prefix)
		default:
			w.exact[entry] = true
		}
	}
	p.workloads = w
	return errs
}

// match reports whether the policy is for the workload.
func (w *workloads) match(name string) bool {
	return w.all || w.exact[name] || w.matchPrefix(name)
}

func (w *workloads) matchPrefix(name string) bool {
	for _, prefix := range w.prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// overlap reports whether some workload is in both.
func (w *workloads) overlap(other *workloads) bool {
	return w.reaches(other) || other.reaches(w)
}

// reaches reports whether w matches an entry of other: a name of it, or every
// name that one of its prefixes stands for.
func (w *workloads) reaches(other *workloads) bool {
	if w.all {
		return other.all || len(other.exact)+len(other.prefixes) > 0
	}
	for name := range other.exact {
		if w.match(name) {
			return true
		}
	}
	for _, prefix := range other.prefixes {
		if w.matchPrefix(prefix) {
			return true
		}
	}
	return false
}
