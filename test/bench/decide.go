package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/placement"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/refusal"
)

const (
	policies = 100
	// A batch is short enough that most aren't interrupted, and long enough
	// that reading the clock costs nothing beside it.
	batch, batches = 100, 300
	// issuer is the CI of every repository that has a policy.
	issuer = "https://ci.example"
	// workload is what every repository deploys.
	workload = "payments/api"
)

// production is the labels of every cell, which every policy selects: the most
// that a decision may have to look at.
var production = map[string]string{registryv1alpha1.LabelEnv: "prod"}

// measureDecisions measures Govern over the policies and Decide over fleets of
// several sizes.
func measureDecisions(_ context.Context, r *report) error {
	r.say("\nDecide: %d policies that take turns, each LeastLoaded and for every cell; the cells have sizes and loads"+
		"\nat random, one in ten is DRAINING; asked are 500m of cpu, 1Gi of memory and a pod, without a trace."+
		"\nA time is the median of %d batches of %d decisions, so that other programs on the machine count little.",
		policies, batches, batch)
	compiled, err := compilePolicies()
	if err != nil {
		return err
	}
	if err := measureGovern(r, policy.NewSet(compiled)); err != nil {
		return err
	}
	var allocated []float64
	for _, cells := range []int{100, 1_000, 10_000, 100_000} {
		took, allocs, err := measureDecide(cells, compiled)
		if err != nil {
			return fmt.Errorf("%d cells: %w", cells, err)
		}
		name := fmt.Sprintf("decide_%d_cells_us", cells)
		r.result(name, took, "us")
		if cells == 10_000 {
			r.atMost(name, took, 10)
		}
		r.result(fmt.Sprintf("decide_allocs_%d_cells", cells), allocs, "allocs")
		allocated = append(allocated, allocs)
	}
	fewest, most := slices.Min(allocated), slices.Max(allocated)
	r.goal(fewest == most, "a decision allocates %s to %s times, and the number of cells is to make no difference",
		number(fewest), number(most))
	return nil
}

// compilePolicies returns a policy for each of as many repositories.
func compilePolicies() ([]*policy.Policy, error) {
	compiler, err := policy.NewCompiler()
	if err != nil {
		return nil, err
	}
	compiled := make([]*policy.Policy, policies)
	for i := range compiled {
		row := &registryv1alpha1.PlacementPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("repository-%02d", i)},
			Spec: registryv1alpha1.PlacementPolicySpec{
				Subjects: []registryv1alpha1.PolicySubject{{
					Issuer: issuer,
					Claims: map[string]registryv1alpha1.ClaimValue{"repository": registryv1alpha1.ClaimValue(repository(i))},
				}},
				Workloads:       []string{"payments/*"},
				ClusterSelector: metav1.LabelSelector{MatchLabels: production},
				Credential:      registryv1alpha1.CredentialScope{Namespace: "payments", ServiceAccountName: "deployer"},
			},
		}
		p, wrong := compiler.Compile(row)
		if len(wrong) > 0 {
			return nil, fmt.Errorf("policy %s: %w", row.Name, wrong.ToAggregate())
		}
		compiled[i] = p
	}
	return compiled, nil
}

func repository(i int) string { return fmt.Sprintf("acme/repository-%02d", i) }

func measureGovern(r *report, set *policy.Set) error {
	callers := make([]policy.Caller, policies)
	for i := range callers {
		callers[i] = policy.Caller{
			Issuer: issuer, Subject: "repo:" + repository(i),
			Claims: map[string][]string{"repository": {repository(i)}, "ref": {"refs/heads/main"}},
		}
	}
	turn := 0
	took, allocs, err := measure(func() *refusal.Refusal {
		turn++
		_, refused := set.Govern(callers[turn%len(callers)], workload)
		return refused
	})
	if err != nil {
		return err
	}
	r.result(fmt.Sprintf("govern_%d_policies_us", policies), took, "us")
	r.result(fmt.Sprintf("govern_allocs_%d_policies", policies), allocs, "allocs")
	return nil
}

// measureDecide returns how many µs a decision over so many cells takes, and
// how often it allocates.
func measureDecide(cells int, compiled []*policy.Policy) (took, allocs float64, err error) {
	engine, err := newEngine(cells)
	if err != nil {
		return 0, 0, err
	}
	resources, refused := capacity.ParseAmounts("spec.resources", amounts(500, 1<<30, 1))
	if refused != nil {
		return 0, 0, refused
	}
	request := placement.Request{Workload: workload, Resources: resources}

	permissions := make([]*placement.Permission, len(compiled))
	for i, p := range compiled {
		permissions[i] = &placement.Permission{Policy: p.Name, Selector: p.Selector, Strategy: p.Strategy}
		// The first decision under a policy asks its selector about each cell.
		if _, refused := engine.Decide(request, permissions[i], time.Now()); refused != nil {
			return 0, 0, refused
		}
	}
	turn := 0
	return measure(func() *refusal.Refusal {
		turn++
		_, refused := engine.Decide(request, permissions[turn%len(permissions)], time.Now())
		return refused
	})
}

// newEngine returns an engine over so many cells. Each has reported, and the
// reports count for longer than the measurement takes.
func newEngine(cells int) (*placement.Engine, error) {
	now := time.Now()
	index := capacity.New(capacity.Options{Window: time.Hour}, now)
	engine := placement.New(index, nil)
	rows := make([]*registryv1alpha1.Cluster, cells)
	for i := range rows {
		state := registryv1alpha1.StateLive
		if i%10 == 9 {
			state = registryv1alpha1.StateDraining
		}
		rows[i] = &registryv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cell-%06d", i), Labels: production},
			Spec:       registryv1alpha1.ClusterSpec{State: state},
		}
	}
	engine.Register(rows)

	random := rand.New(rand.NewPCG(1, 2)) // the same loads each time
	for _, row := range rows {
		said, refused := capacity.ParseReport(load(random, now))
		if refused != nil {
			return nil, refused
		}
		if _, refused := index.Observe(row.Name, said, now); refused != nil {
			return nil, refused
		}
	}
	return engine, nil
}

// load is a report of 4 to 64 nodes of 16 cores, of which 10 to 90 % of each
// resource is given away.
func load(random *rand.Rand, now time.Time) *cellcastv1alpha1.CellCapacitySpec {
	nodes := 4 + random.Int64N(61)
	of := func(all int64) int64 { return all/10 + random.Int64N(all*8/10) }
	cpu, memory, pods := nodes*16_000, nodes*64<<30, nodes*110
	return &cellcastv1alpha1.CellCapacitySpec{
		Sequence: 1, ObservedAt: metav1.NewMicroTime(now), Nodes: int32(nodes),
		Allocatable: amounts(cpu, memory, pods),
		Requested:   amounts(of(cpu), of(memory), of(pods)),
	}
}

// amounts takes thousandths of a core, bytes and a number.
func amounts(cpu, memory, pods int64) cellcastv1alpha1.ResourceList {
	return cellcastv1alpha1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(pods, resource.DecimalSI),
	}
}

// measure returns how many µs a decision takes, and how often it allocates. It
// ends with the first that is refused.
func measure(decide func() *refusal.Refusal) (took, allocs float64, err error) {
	var refused *refusal.Refusal
	series := func() {
		for range batch {
			if refused == nil {
				refused = decide()
			}
		}
	}
	allocs = testing.AllocsPerRun(10, series) / batch // warms up too

	all := make([]time.Duration, batches)
	for i := range all {
		began := time.Now()
		series()
		all[i] = time.Since(began)
	}
	if refused != nil {
		return 0, 0, refused
	}
	return microseconds(newTimes(all).percentile(50)) / batch, allocs, nil
}
