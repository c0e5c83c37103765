package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/test/world"
)

// cells are the demo's fleet and how full each is: of 16 cores and 64Gi, so
// many cores are requested. The emptiest is the one that production pipelines
// may not reach.
var cells = []struct {
	name, env, region string
	cores             int
}{
	{"dev-eu", "dev", "eu", 1},
	{"prod-eu", "prod", "eu", 6},
	{"prod-us", "prod", "us", 10},
}

func start(ctx context.Context, detach bool) (*world.World, error) {
	began := time.Now()
	fmt.Println("demo: starting a hub, three cells, and a cluster that the fleet doesn't manage; about a minute")
	// Of a fleet that isn't whole any more, nothing must stay behind.
	ended, err := stop(ctx)
	if err != nil {
		return nil, err
	}
	if len(ended) > 0 {
		fmt.Printf("demo: stopped the %d processes that were left of an earlier fleet\n", len(ended))
	}
	if err := os.RemoveAll(folder); err != nil {
		return nil, err
	}
	options := world.Options{Dir: folder, Detach: detach}
	for _, c := range cells {
		options.Cells = append(options.Cells, world.CellOptions{
			Name:   c.name,
			Labels: map[string]string{"env": c.env, "region": c.region},
		})
	}
	beside, err := acme()
	if err != nil {
		return nil, err
	}
	options.Cells = append(options.Cells, beside)
	w, err := world.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := furnish(ctx, w); err != nil {
		return nil, errors.Join(err, w.Stop(), removeTokenDir())
	}
	fmt.Printf("demo: ready after %d s; logs are in %s/logs\n", int(time.Since(began).Seconds()), folder)
	return w, nil
}

// stop ends the fleet that an earlier call has left, and returns which processes
// it ended.
func stop(ctx context.Context) ([]string, error) {
	ended, err := world.StopDetached(ctx, folder)
	if err != nil {
		return ended, err
	}
	return ended, removeTokenDir()
}

// furnish starts cellcast on the control planes and registers the cells.
func furnish(ctx context.Context, w *world.World) error {
	authentication, err := startIssuer(ctx, w)
	if err != nil {
		return err
	}
	flags, err := targetFlags(w)
	if err != nil {
		return err
	}
	if err := w.Hub.Deploy(ctx, world.ServerOptions{PipelineAuthentication: authentication, Args: flags}); err != nil {
		return err
	}
	client, err := versioned.NewForConfig(w.Hub.Admin.Config())
	if err != nil {
		return err
	}
	for _, c := range cells {
		if err := join(ctx, w, client, w.Cell(c.name), c.cores); err != nil {
			return err
		}
	}
	for _, p := range policies() {
		if _, err := client.RegistryV1alpha1().PlacementPolicies().Create(ctx, p, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating policy %s: %w", p.Name, err)
		}
	}
	if err := errors.Join(hand(ctx, w), give(ctx, w)); err != nil {
		return err
	}
	return settle(ctx, client)
}

// join makes a control plane a cell of the fleet, in which so many cores are
// requested.
func join(ctx context.Context, w *world.World, client versioned.Interface, cell *world.Cell, cores int) error {
	if err := fill(ctx, cell, cores); err != nil {
		return err
	}
	if err := cell.InstallAccess(ctx, world.Access{
		Mint: []string{"payments/deployer", "web/deployer", "jobs/deployer"}, Revocable: []string{"jobs"},
	}); err != nil {
		return err
	}
	for namespace, accounts := range map[string][]string{"payments": {"payments", "jobs"}, "web": {"web"}} {
		if err := allow(ctx, cell, namespace, accounts); err != nil {
			return err
		}
	}
	if _, err := client.RegistryV1alpha1().Clusters().Create(ctx, cell.Cluster(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("registering %s: %w", cell.Name, err)
	}
	return cell.StartAgent(ctx, w.Hub.Server, world.RevocableFlag([]string{"jobs"}))
}

// fill gives a cell one node and pods that request so many cores of it.
func fill(ctx context.Context, cell *world.Cell, cores int) error {
	if err := cell.AddNode(ctx, "node-1", corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}); err != nil {
		return err
	}
	for i := range cores {
		if err := cell.AddPod(ctx, "workloads", fmt.Sprintf("pod-%d", i), "node-1", corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("2Gi"),
		}); err != nil {
			return err
		}
	}
	return nil
}

// policies are who may reach what: the payments repository the production
// cells, with a credential that ends with the job for payments/migrate, and the
// hub's own developers the development ones.
func policies() []*registryv1alpha1.PlacementPolicy {
	return []*registryv1alpha1.PlacementPolicy{
		{
			ObjectMeta: metav1.ObjectMeta{Name: "payments-prod"},
			Spec: registryv1alpha1.PlacementPolicySpec{
				Subjects: []registryv1alpha1.PolicySubject{{
					Issuer: issuerURL(),
					Claims: map[string]registryv1alpha1.ClaimValue{"repository_id": paymentsID, "ref": "refs/heads/main"},
				}},
				Workloads:       []string{"payments/*"},
				ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
				Credential:      registryv1alpha1.CredentialScope{Namespace: "payments", ServiceAccountName: "deployer"},
			},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "payments-jobs"},
			Spec: registryv1alpha1.PlacementPolicySpec{
				Subjects: []registryv1alpha1.PolicySubject{{
					Issuer:  issuerURL(),
					Subject: "repo:acme/payments:ref:refs/heads/main",
					Claims:  map[string]registryv1alpha1.ClaimValue{"repository_id": paymentsID, "ref": "refs/heads/main"},
				}},
				Workloads:       []string{"payments/migrate"},
				ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
				TokenTTL:        &registryv1alpha1.TokenTTL{Default: &metav1.Duration{Duration: 2 * time.Minute}, Max: &metav1.Duration{Duration: 5 * time.Minute}},
				Credential:      registryv1alpha1.CredentialScope{Namespace: "jobs", ServiceAccountName: "deployer", Revocable: true},
			},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "developers"},
			Spec: registryv1alpha1.PlacementPolicySpec{
				Subjects:        []registryv1alpha1.PolicySubject{{Groups: []string{"developers"}}},
				ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"env": "dev"}},
				Credential:      registryv1alpha1.CredentialScope{Namespace: "web", ServiceAccountName: "deployer"},
			},
		},
	}
}

// settle waits until every cell is trusted and has reported.
func settle(ctx context.Context, client versioned.Interface) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = settled(ctx, client)
		return last == nil, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("the fleet isn't ready: %w; see %s/logs", last, folder)
	}
	return err
}

func settled(ctx context.Context, client versioned.Interface) error {
	rows, err := client.RegistryV1alpha1().Clusters().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, row := range rows.Items {
		for _, condition := range []string{registryv1alpha1.ConditionTrustEstablished, registryv1alpha1.ConditionReporterTrusted} {
			if !meta.IsStatusConditionTrue(row.Status.Conditions, condition) {
				return fmt.Errorf("%s isn't %s yet", row.Name, condition)
			}
		}
	}
	answers, err := client.CellcastV1alpha1().Cells().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, cell := range answers.Items {
		if cell.Status.Capacity != cellcastv1alpha1.CapacityFresh {
			return fmt.Errorf("the capacity of %s is %s", cell.Name, cell.Status.Capacity)
		}
	}
	return nil
}
