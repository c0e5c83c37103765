package policy

import (
	"strings"
	"testing"

	"cellcast.io/cellcast/pkg/refusal"
)

const workloadHas = `at most 253 lower-case letters, digits, '-', '.', '_' and '/', starting with a letter or digit`

func TestParseWorkload(t *testing.T) {
	for _, name := range []string{"a", "0", "payments/api", "a-b.c_d/e", strings.Repeat("a", 253)} {
		if r := ParseWorkload(name); r != nil {
			t.Errorf("%q: %v", name, r)
		}
	}
	for name, message := range map[string]string{
		"":                       "is required: name what is deployed, such as payments/api (" + workloadHas + ")",
		"API":                    `"API" is not a workload's name, which has ` + workloadHas,
		"-a":                     `"-a" is not a workload's name, which has ` + workloadHas,
		"/a":                     `"/a" is not a workload's name, which has ` + workloadHas,
		"a b":                    `"a b" is not a workload's name, which has ` + workloadHas,
		"a*":                     `"a*" is not a workload's name, which has ` + workloadHas,
		"a\n":                    `"a\n" is not a workload's name, which has ` + workloadHas,
		"café":                   `"café" is not a workload's name, which has ` + workloadHas,
		strings.Repeat("a", 254): `"` + strings.Repeat("a", 64) + `"... is 254 bytes long; a workload's name has ` + workloadHas,
		strings.Repeat("a", 63) + "é" + strings.Repeat("a", 63): `"` + strings.Repeat("a", 63) + `"... is not a workload's name, which has ` + workloadHas,
	} {
		wantRefusal(t, ParseWorkload(name), refusal.InvalidRequest, "spec.workload", message)
	}
}

func TestWorkloadsMatch(t *testing.T) {
	for name, test := range map[string]struct {
		workloads string
		workload  string
		want      bool
	}{
		"none listed":                   {"[]", "payments/api", true},
		"the name":                      {"[web, payments/api]", "payments/api", true},
		"the start of a name":           {"[payments]", "payments/api", false},
		"more than a name":              {"[payments/api/v2]", "payments/api", false},
		"a prefix":                      {"['payments/*']", "payments/api", true},
		"a prefix without a slash":      {"['pay*']", "payments/api", true},
		"a prefix that is all the name": {"['payments/api*']", "payments/api", true},
		"another prefix":                {"['payment/*']", "payments/api", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := compile(t, "p", anyone+"workloads: "+test.workloads+rest)
			if got := p.workloads.match(test.workload); got != test.want {
				t.Errorf("match: %v, want %v", got, test.want)
			}
		})
	}
}
