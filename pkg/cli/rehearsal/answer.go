package rehearsal

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/refusal"
)

// Answer is what the hub would decide, and why. Its JSON is for scripts.
type Answer struct {
	Workload string `json:"workload"`
	Dark     bool   `json:"dark,omitempty"`
	// Caller names who asks, as the hub's refusals do.
	Caller string `json:"caller"`
	// Refusal is set where the hub would refuse for good.
	Refusal *Refusal `json:"refusal,omitempty"`

	// Policy governs; empty where none does.
	Policy string `json:"policy,omitempty"`
	// Specificity is the number of its constraints that matched.
	Specificity int `json:"specificity,omitempty"`
	// Tied are the policies that match as specifically: the name decided.
	Tied     []string `json:"tied,omitempty"`
	Strategy string   `json:"strategy,omitempty"`
	// Credential is what the credential would be for.
	Credential *Credential `json:"credential,omitempty"`
	// Policies says of every policy what became of it.
	Policies []Verdict `json:"policies,omitempty"`

	// Lives are how long a credential lives by the env label of a cell, where
	// no cells are given.
	Lives []Life `json:"lives,omitempty"`
	// Cells are the cells that the policy permits.
	Cells []Cell `json:"cells,omitempty"`
	// OtherCells is the number of the others.
	OtherCells int32 `json:"otherCells,omitempty"`
	// NoneTakes says why no permitted cell would take the placement now; it's
	// no refusal, because it changes with the cells and not with the policy.
	NoneTakes string `json:"noneTakes,omitempty"`

	refused *refusal.Refusal
}

// Refusal is a refusal that no retry clears.
type Refusal struct {
	Code    refusal.Code `json:"code"`
	Field   string       `json:"field,omitempty"`
	Message string       `json:"message"`
}

// Credential is the scope of a credential.
type Credential struct {
	Namespace          string   `json:"namespace"`
	ServiceAccountName string   `json:"serviceAccountName"`
	Audiences          []string `json:"audiences,omitempty"`
	Revocable          bool     `json:"revocable,omitempty"`
}

// Verdict is what became of a policy, and where the policy is from.
type Verdict struct {
	Policy      string         `json:"policy"`
	From        string         `json:"from"`
	Outcome     policy.Outcome `json:"outcome"`
	Specificity int            `json:"specificity,omitempty"`
	Reasons     []string       `json:"reasons,omitempty"`
}

// Life is how long a credential lives on a cell of an env.
type Life struct {
	Env string `json:"env,omitempty"`
	// Default is the life of a credential whose request names none, Max the
	// longest that a request may ask for.
	Default metav1.Duration `json:"defaultTTL,omitzero"`
	Max     metav1.Duration `json:"maxTTL,omitzero"`
	// Refused says why there is no credential at all.
	Refused string `json:"refused,omitempty"`
}

// Cell is a cell that the policy permits.
type Cell struct {
	Name  string                `json:"name"`
	State registry.ClusterState `json:"state"`
	Life  `json:",inline"`
	// Takes says whether its state takes the placement; Message says why not.
	Takes   bool   `json:"takes"`
	Message string `json:"message,omitempty"`
}

// Refused returns the refusal, nil where there is none.
func (a *Answer) Refused() *refusal.Refusal { return a.refused }

// refuse notes a refusal, nil for none.
func (a *Answer) refuse(r *refusal.Refusal) {
	if a.refused = r; r != nil {
		a.Refusal = &Refusal{Code: r.Code, Field: r.Field, Message: r.Message}
	}
}

// explain notes what became of each policy, and which file it is from.
func (a *Answer) explain(q Question, verdicts []policy.Verdict) {
	from := map[string]string{}
	for _, row := range q.Policies {
		from[row.Object.Name] = row.From
	}
	for _, v := range verdicts {
		a.Policies = append(a.Policies, Verdict{Policy: v.Policy, From: from[v.Policy],
			Outcome: v.Outcome, Specificity: v.Specificity, Reasons: v.Reasons})
	}
}

// lives are the lives by env, the tightest last: it's for every other env too.
func lives(q Question, p *policy.Policy) []Life {
	var all []Life
	for _, env := range []string{"dev", "stage", "prod"} {
		all = append(all, life(policy.TTLRules{Env: env, Policy: p, Ceiling: q.Ceiling}))
	}
	return all
}

func life(rules policy.TTLRules) Life {
	l := Life{Env: rules.Env}
	usual, refused := policy.ResolveTTL(0, rules)
	if refused != nil {
		l.Refused = refused.Message
		return l
	}
	l.Default.Duration = usual.Round(time.Second)
	l.Max.Duration = policy.Bounds(rules).Max
	return l
}
