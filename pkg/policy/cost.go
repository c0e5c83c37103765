package policy

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
)

const (
	// maxCost is what an evaluation may cost in CEL's units, as estimated for
	// the largest inputs when it is compiled. It is what Kubernetes permits.
	maxCost = 1_000_000
	// maxSteps is how many steps the loops of one evaluation may take. It is a
	// second line: with the bounds of inputs, the estimate should be met first.
	// CEL's own count of the cost isn't used, because its time grows with the
	// square of the steps: 10,000 take 600 ms with it and 10 ms without.
	maxSteps = 100_000
)

// checkCost refuses an expression whose cost can't be bounded by maxCost.
func checkCost(env *cel.Env, compiled *cel.Ast) error {
	e, err := inspect(compiled.NativeRep())
	if err != nil {
		return err
	}
	cost, err := env.EstimateCost(compiled, e)
	if err != nil {
		return fmt.Errorf("has a cost that can't be estimated: %w", err)
	}
	if cost.Max > maxCost {
		return fmt.Errorf("could cost more than %d units (a caller may have %d groups, %d claims and values of %d bytes); "+
			"use ==, in or startsWith in place of matches, and avoid a loop within a loop",
			maxCost, maxListLength, maxClaims, maxValueLength)
	}
	return nil
}

// estimator bounds sizes and costs that CEL by itself takes for unbounded. It
// implements checker.CostEstimator.
type estimator struct {
	// input is the length of the longest text that an expression starts from:
	// a caller's value, or text in the expression itself.
	input uint64
	// growth is how many times longer a text can get.
	growth uint64
	// patterns are the sizes of regular expressions by the expression id.
	patterns map[int64]uint64
}

// EstimateSize bounds what is read from a variable by the bounds of callers,
// and any other string by the longest there can be.
func (e *estimator) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	path := node.Path()
	fromCaller := len(path) > 0 && isVariable(path[0])
	switch kind := node.Type().Kind(); {
	case kind == types.StringKind && fromCaller:
		return &checker.SizeEstimate{Max: maxValueLength}
	case kind == types.ListKind && fromCaller:
		return &checker.SizeEstimate{Max: maxListLength}
	case kind == types.MapKind && fromCaller:
		return &checker.SizeEstimate{Max: maxClaims}
	case kind == types.StringKind:
		return &checker.SizeEstimate{Max: e.longest()}
	default:
		return nil
	}
}

// EstimateCallCost charges matches for each character and each instruction of
// the pattern. CEL's own estimate goes by the length of the pattern's text.
func (e *estimator) EstimateCallCost(function, _ string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	if function != "matches" || len(args) == 0 {
		return nil
	}
	text := args[0]
	if target != nil {
		text = *target
	}
	size := text.ComputedSize()
	if size == nil {
		size = e.EstimateSize(text)
	}
	if size == nil {
		return nil
	}
	instructions := e.patterns[args[len(args)-1].Expr().ID()]
	perPass := size.Add(checker.FixedSizeEstimate(1)).MultiplyByCostFactor(common.StringTraversalCostFactor)
	return &checker.CallEstimate{CostEstimate: perPass.Multiply(checker.CostEstimate{Min: 1, Max: instructions})}
}
