package policy

import "fmt"

// The names of the variables.
const (
	variableUser       = "user"
	variableGroups     = "groups"
	variableClaims     = "claims"
	variableClaimLists = "claimLists"
	variableWorkload   = "workload"
)

func isVariable(name string) bool {
	switch name {
	case variableUser, variableGroups, variableClaims, variableClaimLists, variableWorkload:
		return true
	default:
		return false
	}
}

// variables are what an expression sees of a caller. They are made when the
// first expression asks and serve all expressions of one decision; most
// decisions need none.
type variables struct {
	// workload is empty for expressions of subjects, which don't see it.
	workload string

	values map[string]any
	err    error
}

// of returns the variables of the caller, which is the same at each call. It
// fails when the caller is beyond the bounds that costs are estimated for.
func (v *variables) of(c *Caller) (map[string]any, error) {
	if v.values == nil && v.err == nil {
		v.values, v.err = makeVariables(*c, v.workload)
	}
	return v.values, v.err
}

func makeVariables(c Caller, workload string) (map[string]any, error) {
	lists := make(map[string][]string, len(c.Claims)+2)
	for name, values := range c.Claims {
		lists[name] = values
	}
	if c.IsPipeline() {
		lists[claimIssuer], lists[claimSubject] = []string{c.Issuer}, []string{c.Subject}
	} else {
		delete(lists, claimIssuer)
		delete(lists, claimSubject)
	}
	if err := checkBounds(c, workload, lists); err != nil {
		return nil, &boundsError{err}
	}
	single := make(map[string]string, len(lists))
	for name, values := range lists {
		if len(values) == 1 {
			single[name] = values[0]
		}
	}
	return map[string]any{
		variableUser: c.User, variableGroups: c.Groups, variableClaims: single, variableClaimLists: lists,
		variableWorkload: workload,
	}, nil
}

// boundsError says that the caller is beyond what expressions see. No
// expression can be asked about such a caller, so it can't be told either
// which policy governs it.
type boundsError struct{ error }

func checkBounds(c Caller, workload string, claims map[string][]string) error {
	if len(c.User) > maxValueLength || len(workload) > maxValueLength {
		return fmt.Errorf("expressions see names of at most %d bytes", maxValueLength)
	}
	if err := checkList("groups", c.Groups); err != nil {
		return err
	}
	if len(claims) > maxClaims {
		return fmt.Errorf("the caller has %d claims; expressions see at most %d", len(claims), maxClaims)
	}
	for name, values := range claims {
		if len(name) > maxValueLength {
			return fmt.Errorf("expressions see names of at most %d bytes", maxValueLength)
		}
		if err := checkList("claim "+quote(name), values); err != nil {
			return err
		}
	}
	return nil
}

func checkList(what string, values []string) error {
	if len(values) > maxListLength {
		return fmt.Errorf("%s has %d values; expressions see at most %d", what, len(values), maxListLength)
	}
	for _, value := range values {
		if len(value) > maxValueLength {
			return fmt.Errorf("%s has a value of %d bytes; expressions see at most %d", what, len(value), maxValueLength)
		}
	}
	return nil
}
