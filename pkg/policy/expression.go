package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
)

// The bounds of an expression and of what it is evaluated over, so that its
// worst case can be known when it is compiled. An expression on a caller beyond
// them fails. Lengths are in bytes.
const (
	maxExpressionLength = 2048
	// maxDepth is how deep an expression may nest. Time to check its types
	// grows much faster than that: lists in lists take 25 s at 200.
	maxDepth = 50
	// maxValueLength is for each name, group, claim value and workload.
	maxValueLength = 1024
	// maxListLength is for the groups, and for the values of one claim.
	maxListLength = 256
	maxClaims     = 64
)

// Compiler compiles policies. It may be used by several goroutines at once.
type Compiler struct {
	caller *cel.Env // what spec.subjects[].expression sees
	scope  *cel.Env // the same and workload, for namespaceExpression
}

// NewCompiler returns a Compiler. An error means that the CEL libraries don't
// fit together: a fault of the build.
//
// The language is standard CEL with the string functions and sets of
// Kubernetes, less what inspect refuses. Nothing in it knows the time, so a
// decision is a function of caller and policies alone.
func NewCompiler() (*Compiler, error) {
	caller, err := cel.NewEnv(
		cel.Variable(variableUser, cel.StringType),
		cel.Variable(variableGroups, cel.ListType(cel.StringType)),
		cel.Variable(variableClaims, cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable(variableClaimLists, cel.MapType(cel.StringType, cel.ListType(cel.StringType))),
		cel.DefaultUTCTimeZone(true),
		cel.EagerlyValidateDeclarations(true),
		cel.ParserRecursionLimit(maxDepth),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(),
			cel.ValidateHomogeneousAggregateLiterals()),
		ext.Strings(ext.StringsVersion(5)), // the first that counts costs
		ext.Sets(ext.SetsVersion(0)),
	)
	if err != nil {
		return nil, fmt.Errorf("build the CEL environment: %w", err)
	}
	scope, err := caller.Extend(cel.Variable(variableWorkload, cel.StringType))
	if err != nil {
		return nil, fmt.Errorf("extend the CEL environment: %w", err)
	}
	return &Compiler{caller: caller, scope: scope}, nil
}

// expression is compiled CEL of a known result type.
type expression struct {
	text    string
	program cel.Program
}

// compileExpression compiles text that must yield want. The error is for
// whoever wrote the text.
func compileExpression(env *cel.Env, text string, want *cel.Type) (*expression, error) {
	if len(text) > maxExpressionLength {
		return nil, fmt.Errorf("has %d bytes; write it in at most %d", len(text), maxExpressionLength)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, describe(issues)
	}
	if got := ast.OutputType(); !got.IsExactType(want) {
		return nil, fmt.Errorf("yields %s; write it so that it yields %s", cel.FormatCELType(got), cel.FormatCELType(want))
	}
	if err := checkCost(env, ast); err != nil {
		return nil, err
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.InterruptCheckFrequency(maxSteps))
	if err != nil {
		return nil, fmt.Errorf("can't be compiled: %w", err)
	}
	return &expression{text: text, program: program}, nil
}

// describe is the first of the issues, on one line.
func describe(issues *cel.Issues) error {
	first := issues.Errors()[0]
	message := strings.Join(strings.Fields(strings.TrimSuffix(first.Message, " (in container '')")), " ")
	if at := first.Location; at.Line() > 0 {
		message = fmt.Sprintf("line %d, column %d: %s", at.Line(), at.Column()+1, message)
	}
	return fmt.Errorf("%s; correct the expression", message)
}

// source is the text, empty for no expression.
func (e *expression) source() string {
	if e == nil {
		return ""
	}
	return e.text
}

// holds evaluates an expression that yields a bool. It is false with an error
// when the evaluation fails.
func (e *expression) holds(v *variables, c *Caller) (bool, error) {
	value, err := e.evaluate(v, c)
	if err != nil {
		return false, err
	}
	yes, isBool := value.(bool)
	return isBool && yes, nil
}

// yield evaluates an expression that yields a string.
func (e *expression) yield(v *variables, c *Caller) (string, error) {
	value, err := e.evaluate(v, c)
	if err != nil {
		return "", err
	}
	s, isString := value.(string)
	if !isString {
		return "", fmt.Errorf("yields %T, not a string", value)
	}
	return s, nil
}

// evaluate returns the value as Go has it. The error may quote what the
// expression read.
//
// An evaluation ends at step maxSteps of its loops: CEL looks there, and only
// there, whether the context is done, and it is. Neither the clock nor the end
// of a request ever interrupts one. An expression cut short counts as not
// matching, so on a busy machine a less specific policy would govern.
func (e *expression) evaluate(v *variables, c *Caller) (any, error) {
	values, err := v.of(c)
	if err != nil {
		return nil, err
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	out, _, err := e.program.ContextEval(done, values)
	if errors.Is(err, interpreter.InterruptError{}) {
		return nil, fmt.Errorf("takes more than %d steps", maxSteps)
	}
	if err != nil {
		return nil, err
	}
	return out.Value(), nil
}
