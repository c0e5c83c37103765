package rehearsal

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/refusal"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// rows are a general policy, an exception from it, and one for people.
const rows = `
kind: PlacementPolicy
apiVersion: registry.cellcast.io/v1alpha1
metadata: {name: acme}
spec:
  subjects: [{issuer: "https://ci.example.com", claims: {owner: acme}}]
  clusterSelector: {matchLabels: {env: dev}}
  credential: {namespaceExpression: "'team-' + claims.team", serviceAccountName: deployer}
---
kind: PlacementPolicy
apiVersion: registry.cellcast.io/v1alpha1
metadata: {name: payments}
spec:
  subjects: [{issuer: "https://ci.example.com", claims: {owner: acme, repository_id: "42"}}]
  workloads: [payments/*]
  clusterSelector: {matchExpressions: [{key: env, operator: In, values: [prod, stage]}]}
  strategy: Sticky
  allowDark: true
  credential: {namespace: payments, serviceAccountName: deployer, revocable: true}
---
kind: PlacementPolicy
apiVersion: registry.cellcast.io/v1alpha1
metadata: {name: people}
spec:
  subjects: [{groups: [developers]}]
  clusterSelector: {matchLabels: {env: none}}
  credential: {namespace: dev, serviceAccountName: deployer}
`

const fleetRows = `
kind: ClusterList
apiVersion: registry.cellcast.io/v1alpha1
items:
- {metadata: {name: dev-1, labels: {env: dev}}, spec: {state: LIVE}}
- {metadata: {name: prod-1, labels: {env: prod}}, spec: {}}
- {metadata: {name: prod-2, labels: {env: prod}}, spec: {state: DRAINING}}
- {metadata: {name: prod-3, labels: {env: prod}}, spec: {state: DARK}}
- {metadata: {name: stage-1, labels: {env: stage}}, spec: {state: LIVE}}
`

// question is that of a pipeline of repository 42, over the rows above.
func question(t *testing.T, change func(*Question)) Question {
	t.Helper()
	policies, skipped, err := ReadPolicies([]File{{"policies.yaml", []byte(rows)}})
	if err != nil || len(skipped) > 0 {
		t.Fatal(err, skipped)
	}
	cells, skipped, err := ReadCells([]File{{"cells.yaml", []byte(fleetRows)}})
	if err != nil || len(skipped) > 0 {
		t.Fatal(err, skipped)
	}
	q := Question{
		Caller: policy.Caller{Issuer: "https://ci.example.com", Subject: "repo:acme/payments",
			Claims: map[string][]string{"owner": {"acme"}, "repository_id": {"42"}, "team": {"pay"}}},
		Workload: "payments/api", Ceiling: time.Hour, Policies: policies, Cells: cells,
	}
	change(&q)
	return q
}

func ttl(usual, most time.Duration, env string) Life {
	return Life{Env: env, Default: metav1.Duration{Duration: usual}, Max: metav1.Duration{Duration: most}}
}

func TestTheAnswerIsWhole(t *testing.T) {
	got, err := Ask(question(t, func(*Question) {}), noon)
	if err != nil {
		t.Fatal(err)
	}
	want := &Answer{
		Workload: "payments/api", Caller: `subject "repo:acme/payments" of issuer "https://ci.example.com"`,
		Policy: "payments", Specificity: 3, Strategy: "Sticky",
		Credential: &Credential{Namespace: "payments", ServiceAccountName: "deployer", Revocable: true},
		Policies: []Verdict{
			{"payments", "policies.yaml, document 2", policy.Governs, 3, []string{"spec.subjects[0]: matches"}},
			{"acme", "policies.yaml, document 1", policy.LessSpecific, 2, []string{"spec.subjects[0]: matches"}},
			{"people", "policies.yaml, document 3", policy.NoSubject, 0,
				[]string{"spec.subjects[0]: users, groups and serviceAccounts are for callers of the hub's own, and this is a pipeline"}},
		},
		Cells: []Cell{
			{Name: "prod-1", State: registry.StateLive, Life: ttl(10*time.Minute, 15*time.Minute, "prod"), Takes: true},
			{Name: "prod-2", State: registry.StateDraining, Life: ttl(10*time.Minute, 15*time.Minute, "prod"),
				Message: "the cell is DRAINING and takes no placement"},
			{Name: "prod-3", State: registry.StateDark, Life: ttl(10*time.Minute, 15*time.Minute, "prod"),
				Message: "the cell is DARK and takes only placements that ask for a dark cell"},
			{Name: "stage-1", State: registry.StateLive, Life: ttl(15*time.Minute, 30*time.Minute, "stage"), Takes: true},
		},
		OtherCells: 1,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Answer{})); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func TestAnswers(t *testing.T) {
	for sentence, tt := range map[string]struct {
		change  func(*Question)
		policy  string
		refused refusal.Code
		cells   []string // that take the placement
		none    string   // why no cell does
		lives   int
	}{
		"a dark request takes dark cells alone": {
			change: func(q *Question) { q.Dark = true }, policy: "payments", cells: []string{"prod-3"}},
		"another workload goes back to the general policy": {
			change: func(q *Question) { q.Workload = "web/shop" }, policy: "acme", cells: []string{"dev-1"}},
		"the general policy permits no dark cell": {
			change: func(q *Question) { q.Workload, q.Dark = "web/shop", true }, policy: "acme", refused: refusal.DarkNotPermitted},
		"it says so without cells too": {
			change: func(q *Question) { q.Workload, q.Dark, q.Cells = "web/shop", true, nil }, policy: "acme", refused: refusal.DarkNotPermitted, lives: 3},
		"without cells there is a life for each env": {
			change: func(q *Question) { q.Cells = nil }, policy: "payments", lives: 3},
		"a namespace that can't be computed is refused": {
			change: func(q *Question) { q.Workload = "web/shop"; delete(q.Caller.Claims, "team") }, policy: "acme", refused: refusal.NoPolicy},
		"a stranger is refused": {
			change: func(q *Question) { q.Caller.Claims["owner"] = []string{"other"} }, refused: refusal.NoPolicy},
		"a name that is no workload's is refused": {
			change: func(q *Question) { q.Workload = "Payments" }, refused: refusal.InvalidRequest},
		"a selector that matches no cell is refused": {
			change: func(q *Question) { q.Caller = HubUser("ana", []string{"developers"}) }, policy: "people", refused: refusal.NoPermittedCells},
		"a fleet that is drained is no refusal": {
			change: func(q *Question) { q.Cells = q.Cells[2:3] }, policy: "payments",
			none: `no cell that policy "payments" permits takes this placement: 1 draining`},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := Ask(question(t, tt.change), noon)
			if err != nil {
				t.Fatal(err)
			}
			var takes []string
			for _, c := range got.Cells {
				if c.Takes {
					takes = append(takes, c.Name)
				}
			}
			var code, shown refusal.Code
			if r := got.Refused(); r != nil {
				code, shown = r.Code, got.Refusal.Code
			}
			if got.Policy != tt.policy || code != tt.refused || shown != tt.refused || got.NoneTakes != tt.none || len(got.Lives) != tt.lives {
				t.Errorf("policy %q, refused %q (%+v), none takes %q, %d lives", got.Policy, code, got.Refusal, got.NoneTakes, len(got.Lives))
			}
			if diff := cmp.Diff(tt.cells, takes); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheCeilingCutsEachLife(t *testing.T) {
	got, err := Ask(question(t, func(q *Question) { q.Workload, q.Cells, q.Ceiling = "web/shop", nil, 20*time.Minute }), noon)
	if err != nil {
		t.Fatal(err)
	}
	want := []Life{ttl(20*time.Minute, 20*time.Minute, "dev"), ttl(15*time.Minute, 20*time.Minute, "stage"), ttl(10*time.Minute, 15*time.Minute, "prod")}
	if diff := cmp.Diff(want, got.Lives); diff != "" {
		t.Errorf("lives (-want +got):\n%s", diff)
	}
}

func TestRowsThatAHubWouldRefuse(t *testing.T) {
	for sentence, tt := range map[string]struct {
		change func(*Question)
		want   []string
	}{
		"every policy is compiled, also one that has nothing to do with the question": {
			func(q *Question) { q.Policies[2].Object.Spec.Strategy = "Cheapest" },
			[]string{`policies.yaml, document 3: PlacementPolicy people: spec.strategy: Unsupported value: "Cheapest": supported values: "LeastLoaded", "RoundRobin", "Sticky"`}},
		"two policies of one name": {
			func(q *Question) { q.Policies[2].Object.Name = "acme" },
			[]string{`policies.yaml, document 3: metadata.name: "acme" is in policies.yaml, document 1 too`}},
		"a cell without a name": {
			func(q *Question) { q.Cells[1].Object.Name = "" },
			[]string{"cells.yaml, document 1, items[1]: metadata.name: must have a name"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := Ask(question(t, tt.change), noon)
			assertProblems(t, err, tt.want)
		})
	}
}
