package kubeconfig

import "fmt"

// Error is why a kubeconfig is refused.
type Error struct {
	// Rule is the rule that it breaks.
	Rule Rule
	// Field is the path of the field, such as users[0].user.exec; empty where the
	// text as a whole is meant. A field that isn't known is named by what it stands
	// in, for its name could be anything, a token too.
	Field string
	// Line counts from 1; 0 where no line can be named.
	Line int
	// Message says what is wrong and what to do, and quotes no value.
	Message string
}

// Error is the message with its place before it.
func (e *Error) Error() string {
	switch {
	case e.Line == 0 && e.Field == "":
		return e.Message
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.Field, e.Message)
	case e.Field == "":
		return fmt.Sprintf("line %d: %s", e.Line, e.Message)
	}
	return fmt.Sprintf("line %d, %s: %s", e.Line, e.Field, e.Message)
}

// at puts the place to what was said of a value alone.
func (e *Error) at(field string, line int) *Error {
	e.Field, e.Line = field, line
	return e
}

// refuse is an Error that says what was found, in few words, and then what its
// rule says to do.
func refuse(rule Rule, format string, args ...any) *Error {
	return &Error{Rule: rule, Message: fmt.Sprintf(format, args...) + "; " + meaning(rule).Do}
}

// refuseAsIs is an Error in the words of its rule.
func refuseAsIs(rule Rule) *Error {
	return refuse(rule, "%s", meaning(rule).Means)
}
