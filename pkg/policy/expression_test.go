package policy

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
)

func TestExpressionsThatCompile(t *testing.T) {
	for _, text := range []string{
		`claims.ref.startsWith('refs/tags/v')`,
		`claims.ref.matches('^refs/heads/release-[0-9]+([.][0-9]+)*$')`,
		`claims.repository.split('/')[0] in ['shop', 'web']`,
		`claims.repository.split('/')[0].matches('^team-[a-z]+$')`,
		`claims.ref.split('/').exists(part, part.matches('^v[0-9]'))`,
		`groups.exists(g, g.matches('^team-[a-z]+$'))`,
		`groups.exists(g, g in claimLists.teams)`,
		`sets.intersects(groups, ['ops', 'dev'])`,
		`sets.contains(groups, claimLists.teams)`,
		`claims.exists(name, name.startsWith('env') && claims[name] == 'prod')`,
		`has(claims.environment) ? claims.environment.lowerAscii() == 'prod' : 'ops' in groups`,
		`int(claims.run_attempt) <= 3`,
		`claims.repository.replace('-', '_').replace('/', '--') == 'shop--api'`,
		`(claims.team + '/' + claims.name).indexOf('shop') == 0`,
		`groups.filter(g, g != 'a').filter(g, g != 'b').filter(g, g != 'c').exists(g, g.lowerAscii() == 'x')`,
	} {
		if _, err := compileExpression(compiler(t).caller, text, cel.BoolType); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestExpressionsThatAreRefused(t *testing.T) {
	const costs = "could cost more than 1000000 units (a caller may have 256 groups, 64 claims and values of 1024 bytes); " +
		"use ==, in or startsWith in place of matches, and avoid a loop within a loop"
	for name, test := range map[string]struct{ text, want string }{
		"an unknown variable":              {`team == 'shop'`, "line 1, column 1: undeclared reference to 'team'; correct the expression"},
		"the workload, which Govern knows": {`workload == 'api'`, "line 1, column 1: undeclared reference to 'workload'; correct the expression"},
		"a comparison of types":            {`claims.ref == 1`, "line 1, column 12: found no matching overload for '_==_' applied to '(string, int)'; correct the expression"},
		"no bool":                          {`claims.ref`, "yields string; write it so that it yields bool"},
		"a type known at run time only":    {`dyn(true)`, "yields dyn; write it so that it yields bool"},
		"too long":                         {`'` + strings.Repeat("x", 2048) + `' == ''`, "has 2056 bytes; write it in at most 2048"},
		"too deep":                         {strings.Repeat("!(", 500) + "true" + strings.Repeat(")", 500), "expression recursion limit exceeded: 50; correct the expression"},

		"text that grows by replacements in a chain of loops": {`[claims.ref]` + strings.Repeat(".map(x, x.replace('', '12345678'))", 4) + `.exists(x, x.lowerAscii() == '')`, costs},
		"a pattern that takes long to compile": {`user.matches('` + strings.Repeat("x{1000}", 200) + `')`,
			"has a pattern of 600602 steps and at most 5000 are taken: use smaller repetitions"},
		"a loop within a loop":                          {`groups.exists(a, groups.exists(b, a == b + 'x'))`, costs},
		"a search of each group for a claim":            {`groups.exists(g, g.contains(claims.team))`, costs},
		"a short pattern of many instructions":          {`groups.exists(g, g.matches('(a{900})'))`, costs},
		"text that grows with each replacement":         {`claims.ref.replace('', 'xxxxxxxxxxxxxxxx').replace('', 'xxxxxxxxxxxxxxxx').replace('', 'xxxxxxxxxxxxxxxx') == ''`, costs},
		"text that doubles in a chain of loops":         {`[claims.ref]` + strings.Repeat(".map(x, x + x)", 30) + `.exists(x, x.lowerAscii() == '')`, costs},
		"text that hides behind the name of a variable": {`{'user': claims.ref + claims.ref}.user == ''`, "the field user has the name of a variable; call it something else"},
		"a pattern of the caller's":                     {`claims.ref.matches(claims.pattern)`, "matches needs a quoted pattern, not a value of the caller"},
		"a pattern of the caller's, as argument":        {`matches(claims.ref, claims.pattern)`, "matches needs a quoted pattern, not a value of the caller"},
		"a pattern put together":                        {`claims.ref.matches('^' + claims.team)`, "matches needs a quoted pattern, not a value of the caller"},
		"a pattern that looks back":                     {`claims.ref.matches('(a)\\1')`, "has a pattern that isn't RE2: error parsing regexp: invalid escape sequence: `\\1`"},
		"a replacement by the caller's":                 {`claims.ref.replace('', claims.team) == ''`, "replace needs quoted text for both arguments, not a value of the caller"},
		"a replacement of the caller's":                 {`claims.ref.replace(claims.team, '') == ''`, "replace needs quoted text for both arguments, not a value of the caller"},
		"join":                                          {`groups.join(',') == ''`, "join isn't available in policies; join strings with +"},
		"format":                                        {`'%s'.format([user]) == ''`, "format isn't available in policies; join strings with +"},
		"quote":                                         {`strings.quote(user) == ''`, "strings.quote isn't available in policies; join strings with +"},
		"a time that nobody could know":                 {`timestamp('yesterday') == timestamp('tomorrow')`, "line 1, column 11: invalid timestamp argument; correct the expression"},
		"the current time, which CEL doesn't have":      {`now() > timestamp('2030-01-01T00:00:00Z')`, "line 1, column 4: undeclared reference to 'now'; correct the expression"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compileExpression(compiler(t).caller, test.text, cel.BoolType)
			if err == nil || err.Error() != test.want {
				t.Errorf("error %v\nwant  %s", err, test.want)
			}
		})
	}
}

func TestPatternSizeIsAtLeastWhatThePatternCompilesTo(t *testing.T) {
	for _, text := range []string{``, `a`, `abc`, `^refs/tags/v[0-9]+$`, `(a|b|cd)*`, `(?i)straße`, `x{7}`, `x{0,7}`, `x{3,}`, `(x{3}y){5,9}`,
		`[^a-z]`, `.*(foo|bar)?$`, `((((a))))`, `\bword\b`, `(?:a+)+`, `\pL{2,}`} {
		re, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		size := patternSize(re)
		program, err := syntax.Compile(re.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		const startAndEnd = 2
		if n := uint64(len(program.Inst)); size+startAndEnd < n {
			t.Errorf("%s: size %d, compiles to %d", text, size, n)
		}
	}
}

// The estimate holds for callers within the bounds only, so beyond them no
// expression is evaluated.
func TestExpressionsFailOnCallersBeyondTheBounds(t *testing.T) {
	long := strings.Repeat("x", 1025)
	many := make([]string, 257)
	claims := map[string][]string{}
	for i := range 63 {
		claims[fmt.Sprint(i)] = []string{"x"}
	}
	for name, test := range map[string]struct {
		caller Caller
		want   string
	}{
		"a long name":           {Caller{User: long}, "expressions see names of at most 1024 bytes"},
		"a long subject":        {Caller{Issuer: ci, Subject: long}, `claim "sub" has a value of 1025 bytes; expressions see at most 1024`},
		"a long group":          {Caller{Groups: []string{"a", long}}, "groups has a value of 1025 bytes; expressions see at most 1024"},
		"many groups":           {Caller{Groups: many}, "groups has 257 values; expressions see at most 256"},
		"a long claim":          {Caller{Claims: map[string][]string{"ref": {long}}}, `claim "ref" has a value of 1025 bytes; expressions see at most 1024`},
		"a claim of many":       {Caller{Claims: map[string][]string{"teams": many}}, `claim "teams" has 257 values; expressions see at most 256`},
		"a long name of claims": {Caller{Claims: map[string][]string{long: nil}}, "expressions see names of at most 1024 bytes"},
		"many claims":           {Caller{Issuer: ci, Claims: claims}, "the caller has 65 claims; expressions see at most 64"},
	} {
		t.Run(name, func(t *testing.T) {
			s := compile(t, "p", "subjects: [{expression: 'true'}]"+rest).subjects[0]
			m := s.mismatch(&test.caller, &variables{})
			if m.err == nil || m.err.Error() != test.want {
				t.Errorf("%v, want %s", m, test.want)
			}
		})
	}
	if _, err := (&variables{workload: long}).of(&Caller{}); err == nil || err.Error() != "expressions see names of at most 1024 bytes" {
		t.Errorf("a long workload: %v", err)
	}
	largest := Caller{User: long[1:], Groups: many[1:], Claims: claims}
	s := compile(t, "p", "subjects: [{expression: 'true'}]"+rest).subjects[0]
	if m := s.mismatch(&largest, &variables{}); !m.none() {
		t.Errorf("the largest caller within the bounds: %v", m)
	}
}

// The count of steps ends an evaluation that the estimate should have kept out.
func TestEvaluationEndsAtTheLastStep(t *testing.T) {
	e, err := compileExpression(compiler(t).caller, `groups.all(g, g.startsWith('team-'))`, cel.BoolType)
	if err != nil {
		t.Fatal(err)
	}
	groups := make([]string, maxSteps) // more than a caller may have
	for i := range groups {
		groups[i] = "team-x"
	}
	_, err = e.holds(&variables{values: map[string]any{"groups": groups}}, &Caller{})
	if err == nil || err.Error() != "takes more than 100000 steps" {
		t.Errorf("error %v", err)
	}
	if yes, err := e.holds(&variables{values: map[string]any{"groups": groups[1:]}}, &Caller{}); !yes || err != nil {
		t.Errorf("a step less: %v, error %v", yes, err)
	}
}

// CEL's count of what an evaluation costs stays within the estimate.
func TestEstimatesHoldForTheLargestCaller(t *testing.T) {
	text := strings.Repeat("a", 1024)
	list := make([]string, 256)
	for i := range list {
		list[i] = text
	}
	caller := Caller{User: text, Groups: list, Issuer: text, Subject: text,
		Claims: map[string][]string{"a": {text}, "b": {text}, "list": list}}
	for _, expression := range []string{
		`groups.exists(g, g.matches('^b*$'))`,
		`groups.exists(g, g.lowerAscii() == 'x')`,
		`groups.all(g, g.lowerAscii() == claims.b)`,
		`sets.contains(groups, claimLists.list)`,
		`claims.a.split('').exists(x, x.matches('b'))`,
		`groups.map(g, g + 'x').exists(g, g == claims.a)`,
		`(claims.a + claims.b).replace('a', 'xyz').split('x').size() == 0`,
		`claims.exists(k, claims[k].upperAscii() == k)`,
	} {
		if _, err := compileExpression(compiler(t).caller, expression, cel.BoolType); err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		estimate, cost := costs(t, compiler(t).caller, expression, caller)
		if cost > estimate {
			t.Errorf("%s cost %d, more than the estimated %d", expression, cost, estimate)
		}
	}
}

// costs returns what an expression that compiles costs at most by the estimate,
// and what it costs for the caller by CEL's count.
func costs(t *testing.T, env *cel.Env, expression string, caller Caller) (estimate, cost uint64) {
	t.Helper()
	ast, _ := env.Compile(expression)
	e, err := inspect(ast.NativeRep())
	if err != nil {
		t.Fatal(err)
	}
	estimated, err := env.EstimateCost(ast, e)
	if err != nil {
		t.Fatal(err)
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost))
	if err != nil {
		t.Fatal(err)
	}
	values, err := (&variables{workload: "api"}).of(&caller)
	if err != nil {
		t.Fatal(err)
	}
	_, details, _ := program.Eval(values) // one that fails costs, too
	return estimated.Max, *details.ActualCost()
}
