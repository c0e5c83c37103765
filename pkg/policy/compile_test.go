package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const anyone = "subjects: [{issuer: https://ci.example}]\n"

// Objects that the CRD's schema refuses, too, stand here because an object may
// have come past it.
func TestCompileRefuses(t *testing.T) {
	const workloadError = `must be a workload's name (at most 253 lower-case letters, digits, '-', '.', '_' and '/', starting with a letter or digit), ` +
		`or the start of one followed by *; for every workload leave workloads out`
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"no subject": {rest, []string{
			`spec.subjects: Required value: name at least one subject: a policy without any is for nobody`}},
		"more subjects than a policy may have": {"subjects: [" + strings.Repeat("{users: [ann]},", 65) + "]" + rest, []string{
			`spec.subjects: Too many: 65: must have at most 64 items`}},
		"a subject without constraints, which would be a wildcard": {"subjects: [{users: [ann]}, {}]" + rest, []string{
			`spec.subjects[1]: Required value: must have at least one constraint: a subject without any would match every caller`}},
		"a subject whose constraints are empty lists": {"subjects: [{users: [], groups: [], serviceAccounts: [], claims: {}}]" + rest, []string{
			`spec.subjects[0]: Required value: must have at least one constraint: a subject without any would match every caller`}},
		"a subject of no issuer": {"subjects: [{subject: s}]" + rest, []string{
			`spec.subjects[0].issuer: Required value: name the issuer beside subject and claims: claims of different issuers mean different things`}},
		"claims of no issuer, even with an expression": {"subjects: [{claims: {ref: main}, expression: 'true'}]" + rest, []string{
			`spec.subjects[0].issuer: Required value: name the issuer beside subject and claims: claims of different issuers mean different things`}},
		"users beside an issuer": {"subjects: [{issuer: i, users: [ann]}]" + rest, []string{
			`spec.subjects[0]: Forbidden: issuer, subject and claims are for pipelines; users, groups and serviceAccounts are for callers of the hub's own: use two subjects`}},
		"groups beside an issuer": {"subjects: [{issuer: i, groups: [g]}]" + rest, []string{
			`spec.subjects[0]: Forbidden: issuer, subject and claims are for pipelines; users, groups and serviceAccounts are for callers of the hub's own: use two subjects`}},
		"serviceAccounts beside an issuer": {"subjects: [{issuer: i, serviceAccounts: [{namespace: ns, name: a}]}]" + rest, []string{
			`spec.subjects[0]: Forbidden: issuer, subject and claims are for pipelines; users, groups and serviceAccounts are for callers of the hub's own: use two subjects`}},
		"a user without a name, whom an unnamed caller would match": {"subjects: [{users: [ann, '']}]" + rest, []string{
			`spec.subjects[0].users[1]: Required value: write the name, or leave the entry out`}},
		"a group without a name": {"subjects: [{groups: ['']}]" + rest, []string{
			`spec.subjects[0].groups[0]: Required value: write the name, or leave the entry out`}},
		"a claim without a name": {"subjects: [{issuer: i, claims: {'': x}}]" + rest, []string{
			`spec.subjects[0].claims: Invalid value: "": must have the name of a claim before each value`}},
		"a ServiceAccount without namespace and name": {"subjects: [{serviceAccounts: [{}]}]" + rest, []string{
			`spec.subjects[0].serviceAccounts[0].namespace: Required value: write the ServiceAccount's namespace`,
			`spec.subjects[0].serviceAccounts[0].name: Required value: write the ServiceAccount's name`}},
		"a ServiceAccount whose namespace holds a colon": {"subjects: [{serviceAccounts: [{namespace: 'a:b', name: c}]}]" + rest, []string{
			`spec.subjects[0].serviceAccounts[0].namespace: Invalid value: "a:b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`}},
		"an expression that doesn't compile": {"subjects: [{expression: 'claims.ref =='}]" + rest, []string{
			`spec.subjects[0].expression: Invalid value: "claims.ref ==": line 1, column 14: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}; correct the expression`}},

		"a workload that is everything": {anyone + "workloads: ['*']" + rest, []string{`spec.workloads[0]: Invalid value: "*": ` + workloadError}},
		"a workload without a name":     {anyone + "workloads: [a, '']" + rest, []string{`spec.workloads[1]: Invalid value: "": ` + workloadError}},
		"a workload with a * inside":    {anyone + "workloads: ['a*b', 'a**']" + rest, []string{`spec.workloads[0]: Invalid value: "a*b": ` + workloadError, `spec.workloads[1]: Invalid value: "a**": ` + workloadError}},
		"a workload in capitals":        {anyone + "workloads: [API]" + rest, []string{`spec.workloads[0]: Invalid value: "API": ` + workloadError}},

		"a selector of an unknown operator": {anyone + `
clusterSelector: {matchExpressions: [{key: env, operator: Is, values: [dev]}]}
credential: {namespace: ns, serviceAccountName: s}`, []string{
			`spec.clusterSelector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator`}},
		"a selector of no values": {anyone + `
clusterSelector: {matchExpressions: [{key: env, operator: In}]}
credential: {namespace: ns, serviceAccountName: s}`, []string{
			"spec.clusterSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"}},
		"a strategy that doesn't exist": {anyone + "strategy: Random" + rest, []string{
			`spec.strategy: Unsupported value: "Random": supported values: "LeastLoaded", "RoundRobin", "Sticky"`}},

		"a default longer than max": {anyone + "tokenTTL: {default: 30m, max: 20m}" + rest, []string{
			`spec.tokenTTL.default: Invalid value: "30m0s": must not be longer than max, which is 20m0s`}},
		"a life under ten minutes": {anyone + "tokenTTL: {default: 9m59s, max: 9m59s}" + rest, []string{
			`spec.tokenTTL.default: Invalid value: "9m59s": must be at least 10m0s, the least that Kubernetes issues a token for, unless credential.revocable is set`,
			`spec.tokenTTL.max: Invalid value: "9m59s": must be at least 10m0s, the least that Kubernetes issues a token for, unless credential.revocable is set`}},
		"a life of zero, which is not the same as none": {anyone + "tokenTTL: {max: 0s}" + rest, []string{
			`spec.tokenTTL.max: Invalid value: "0s": must be at least 10m0s, the least that Kubernetes issues a token for, unless credential.revocable is set`}},

		"neither namespace nor expression": {anyone + "clusterSelector: {}\ncredential: {serviceAccountName: s}", []string{
			`spec.credential.namespace: Required value: set namespace, or namespaceExpression where each caller has its own`}},
		"both namespace and expression": {anyone + "clusterSelector: {}\ncredential: {namespace: ns, namespaceExpression: workload, serviceAccountName: s}", []string{
			`spec.credential.namespaceExpression: Forbidden: set either namespace or namespaceExpression, not both`}},
		"a namespace expression that yields no string": {anyone + "clusterSelector: {}\ncredential: {namespaceExpression: groups, serviceAccountName: s}", []string{
			`spec.credential.namespaceExpression: Invalid value: "groups": yields list(string); write it so that it yields string`}},
		"a ServiceAccount that would change the path of the request": {anyone + "clusterSelector: {}\ncredential: {namespace: ns, serviceAccountName: ../pods/x}", []string{
			`spec.credential.serviceAccountName: Invalid value: "../pods/x": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`}},
		"a revocable credential for somebody else than the cell": {anyone + "clusterSelector: {}\ncredential: {namespace: ns, serviceAccountName: s, revocable: true, audiences: [vault]}", []string{
			`spec.credential.audiences: Forbidden: a revocable credential is for the cell's API server alone: whoever else accepts a token doesn't notice that it was revoked; leave audiences out, or revocable`}},
		"a revocable life under a minute": {anyone + "tokenTTL: {max: 59s}\nclusterSelector: {}\ncredential: {namespace: ns, serviceAccountName: s, revocable: true}", []string{
			`spec.tokenTTL.max: Invalid value: "59s": must be at least 1m0s, in which an agent can still be trusted to end a credential`}},
		"an empty audience": {anyone + "clusterSelector: {}\ncredential: {namespace: ns, serviceAccountName: s, audiences: [x, '']}", []string{
			`spec.credential.audiences[1]: Required value: write the name, or leave the entry out`}},

		"everything at once, each error told": {"strategy: X\nclusterSelector: {}\ncredential: {}", []string{
			`spec.subjects: Required value: name at least one subject: a policy without any is for nobody`,
			`spec.strategy: Unsupported value: "X": supported values: "LeastLoaded", "RoundRobin", "Sticky"`,
			`spec.credential.namespace: Required value: set namespace, or namespaceExpression where each caller has its own`,
			`spec.credential.serviceAccountName: Required value: name the ServiceAccount on the cells that the credential is for`}},
	} {
		t.Run(name, func(t *testing.T) {
			p, errs := compiler(t).Compile(object(t, "p", test.spec))
			if diff := cmp.Diff(test.want, said(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if p != nil {
				t.Error("a policy came with the errors")
			}
		})
	}
}
