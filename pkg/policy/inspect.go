package policy

import (
	"errors"
	"fmt"
	"math"
	"regexp/syntax"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// inspect walks an expression for what bounds its cost. It refuses the
// functions whose result can be much longer than what they are given, and
// regular expressions that come from the caller: both would let a caller's
// token decide how long the hub thinks.
func inspect(a *ast.AST) (*estimator, error) {
	e := &estimator{input: maxValueLength, growth: 1, patterns: map[int64]uint64{}}
	var err error // the first
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if text, ok := literal(x); ok {
			e.input = max(e.input, uint64(len(text)))
		}
		switch {
		case err != nil:
		case x.Kind() == ast.CallKind:
			err = e.inspectCall(x.AsCall(), a.GetType(x.ID()))
		case x.Kind() == ast.SelectKind:
			err = inspectSelect(x.AsSelect())
		}
	}))
	return e, err
}

// inspectSelect refuses to read a field of something written in the expression
// by the name of a variable: CEL's estimate knows values by the path that they
// were read by, and would take it for the caller's and for as short.
func inspectSelect(x ast.SelectExpr) error {
	if name := x.FieldName(); isVariable(name) && x.Operand().Kind() != ast.IdentKind && x.Operand().Kind() != ast.SelectKind {
		return fmt.Errorf("the field %s has the name of a variable; call it something else", name)
	}
	return nil
}

func (e *estimator) inspectCall(call ast.CallExpr, result *types.Type) error {
	switch name := call.FunctionName(); name {
	case operators.Add:
		if isText(result) {
			e.grow(2)
		}
		return nil
	case "matches":
		return e.addPattern(call.Args()[len(call.Args())-1])
	case "replace":
		return e.growByReplace(call.Args())
	case "join", "format", "strings.quote":
		return fmt.Errorf("%s isn't available in policies; join strings with +", name)
	default:
		return nil
	}
}

// isText reports whether a sum of this type may be text: the loops of CEL add
// up numbers and lists.
func isText(t *types.Type) bool {
	switch t.Kind() {
	case types.ListKind, types.IntKind, types.UintKind, types.DoubleKind, types.DurationKind, types.TimestampKind:
		return false
	default:
		return true
	}
}

// grow notes an operation whose result has up to factor times the length of
// what it is given. Every such place in the text counts for every string: a
// loop can hand the result of one place to another, never to itself.
func (e *estimator) grow(factor uint64) { e.growth = multiply(e.growth, factor) }

// longest is at least the length of any text that the expression can come by.
func (e *estimator) longest() uint64 { return multiply(e.input, e.growth) }

// multiply is a*b, or the largest number where that is larger still.
func multiply(a, b uint64) uint64 {
	if b > 0 && a > math.MaxUint64/b {
		return math.MaxUint64
	}
	return a * b
}

// growByReplace notes what replace(old, new) can add.
func (e *estimator) growByReplace(args []ast.Expr) error {
	from, ok := literal(args[0])
	to, ok2 := literal(args[1])
	if !ok || !ok2 {
		return errors.New("replace needs quoted text for both arguments, not a value of the caller")
	}
	if from == "" || len(to) > len(from) {
		e.grow(uint64(len(to)) + 2)
	}
	return nil
}

// maxPattern bounds what one regular expression compiles to, whatever it's
// matched against: the compiled form is kept, at some forty bytes a step.
const maxPattern = 5_000

// addPattern notes how many steps a regular expression takes per character.
func (e *estimator) addPattern(pattern ast.Expr) error {
	text, ok := literal(pattern)
	if !ok {
		return errors.New("matches needs a quoted pattern, not a value of the caller")
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return fmt.Errorf("has a pattern that isn't RE2: %w", err)
	}
	size := max(patternSize(re), uint64(len(text)))
	if size > maxPattern {
		return fmt.Errorf("has a pattern of %d steps and at most %d are taken: use smaller repetitions", size, maxPattern)
	}
	e.patterns[pattern.ID()] = size
	return nil
}

// patternSize is at least the number of instructions that a regular expression
// compiles to. Its text says little: x{1000} is short. It isn't compiled to
// find out, for that takes seconds where there are many.
func patternSize(re *syntax.Regexp) uint64 {
	size := uint64(2)
	if re.Op == syntax.OpLiteral {
		size = uint64(max(len(re.Rune), 1))
	}
	for _, sub := range re.Sub {
		size += patternSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= uint64(max(re.Min+1, re.Max, 1))
	}
	return size
}

func literal(x ast.Expr) (string, bool) {
	if x.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := x.AsLiteral().(types.String)
	return string(s), ok
}
