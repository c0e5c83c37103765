package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/test/fleet"
	"cellcast.io/cellcast/test/world"
)

// The policy of the benchmark: who may ask, and for whose token.
const (
	people         = "bench" // a group at the hub, and the user in it
	repositoryID   = "100"   // of the pipeline
	namespace      = "payments"
	serviceAccount = "deployer"
	// life is that of each token, in seconds: what a production cell gives.
	life = 600
)

// measureRequests starts a fleet and compares requests to it.
func measureRequests(ctx context.Context, r *report) error {
	return withFleet(ctx, func(f *fleet.Fleet) error {
		clients, err := newClients(ctx, f)
		if err != nil {
			return err
		}
		if err := clients.settle(ctx, f); err != nil {
			return err
		}
		r.say("\nRequests: one hub, one cell, one policy. Two sides ask in alternation from one process, one request at a time,"+
			"\n%d each after %d to warm up, over open HTTP/2 connections, in JSON, without a limit on the rate. A placement"+
			"\nthrough aggregation and the SelfSubjectAccessReview come from one hub user with a client certificate; a direct"+
			"\none from a pipeline, whose token the hub verifies each time. The bare TokenRequest comes from a user with the"+
			"\nhub's rights on the cell, by client certificate; a placement with mint also holds a reservation.", counted, warmUp)
		return clients.compare(ctx, r)
	})
}

// withFleet runs a measurement on a hub and a cell.
func withFleet(ctx context.Context, measure func(*fleet.Fleet) error) (err error) {
	dir, err := os.MkdirTemp("", "cellcast-bench-")
	if err != nil {
		return err
	}
	f, err := fleet.Start(ctx, fleet.Options{
		Dir:   dir,
		Cells: []world.CellOptions{{Name: "prod-eu", Labels: production}},
		Mint:  []string{namespace + "/" + serviceAccount},
	})
	if err != nil {
		return fmt.Errorf("starting the fleet, whose logs are in %s/logs: %w", dir, err)
	}
	defer func() {
		if err = errors.Join(err, f.Stop()); err == nil {
			err = os.RemoveAll(dir)
		}
	}()
	return measure(f)
}

// compare runs every comparison, and says what a placement with mint is made
// of: it can't take less than what it waits for.
func (c *clients) compare(ctx context.Context, r *report) error {
	var all []medians
	for _, comparison := range c.comparisons() {
		m, err := comparison.run(ctx, r)
		if err != nil {
			return err
		}
		all = append(all, m)
	}
	for i, door := range []string{"through aggregation", "direct"} {
		dryRun, mint := all[i], all[i+2]
		r.say("a placement with mint, %s, takes %s us: a TokenRequest is %s of it, what a dry run takes %s, the rest %s",
			door, number(mint.ours), number(mint.theirs), number(dryRun.ours), number(mint.ours-mint.theirs-dryRun.ours))
	}
	return nil
}

// clients are the ways to ask. Their settings are equal but for the credential.
type clients struct {
	aggregated, direct versioned.Interface
	hub, cell          kubernetes.Interface
}

func newClients(ctx context.Context, f *fleet.Fleet) (*clients, error) {
	if err := permit(ctx, f); err != nil {
		return nil, err
	}
	user, err := f.Hub.User(people, people)
	if err != nil {
		return nil, err
	}
	// By this name the cell's RBAC gives the rights that the hub has.
	minter, err := f.Cells[0].User(world.HubUser)
	if err != nil {
		return nil, err
	}
	token, err := f.Token(repositoryID, nil)
	if err != nil {
		return nil, err
	}
	var c clients
	var errs [4]error
	c.aggregated, errs[0] = versioned.NewForConfig(equal(user.Config()))
	c.direct, errs[1] = versioned.NewForConfig(equal(f.Direct(token)))
	c.hub, errs[2] = kubernetes.NewForConfig(equal(user.Config()))
	c.cell, errs[3] = kubernetes.NewForConfig(equal(minter.Config()))
	return &c, errors.Join(errs[:]...)
}

// equal makes the client speak JSON, which cellcast's API has alone, without a
// limit on the rate.
func equal(config *rest.Config) *rest.Config {
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.QPS = -1
	return config
}

// permit lets the hub user ask, and makes the policy for both callers.
func permit(ctx context.Context, f *fleet.Fleet) error {
	admin, err := kubernetes.NewForConfig(f.Hub.Admin.Config())
	if err != nil {
		return err
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: people},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cellcast-placer"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: people}},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = f.Admin.RegistryV1alpha1().PlacementPolicies().Create(ctx, &registryv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: people},
		Spec: registryv1alpha1.PlacementPolicySpec{
			Subjects: []registryv1alpha1.PolicySubject{
				{Groups: []string{people}},
				{Issuer: f.CI.URL(), Claims: map[string]registryv1alpha1.ClaimValue{"repository_id": repositoryID}},
			},
			ClusterSelector: metav1.LabelSelector{MatchLabels: production},
			Credential:      registryv1alpha1.CredentialScope{Namespace: namespace, ServiceAccountName: serviceAccount},
		},
	}, metav1.CreateOptions{})
	return err
}

// settle returns once every client gets what it asks for.
func (c *clients) settle(ctx context.Context, f *fleet.Fleet) error {
	for _, comparison := range c.comparisons() {
		for _, side := range []side{comparison.ours, comparison.theirs} {
			if err := f.Eventually(ctx, side.name+" is answered", side.ask); err != nil {
				return err
			}
		}
	}
	return nil
}

// comparisons are the dry runs, aggregated and direct, then the same with mint.
func (c *clients) comparisons() []comparison {
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	review, request := side{"ssar", c.review}, side{"tokenrequest", c.requestToken}
	return []comparison{
		{side{"dryrun_aggregated", place(c.aggregated, dryRun)}, review, 2.5},
		{side{"dryrun_direct", place(c.direct, dryRun)}, review, 1.3},
		{side{"mint_aggregated", place(c.aggregated, metav1.CreateOptions{})}, request, 1.6},
		{side{"mint_direct", place(c.direct, metav1.CreateOptions{})}, request, 1.25},
	}
}

// place asks for a placement: with a credential, unless it's a dry run.
func place(client versioned.Interface, options metav1.CreateOptions) func(context.Context) error {
	return func(ctx context.Context) error {
		answer, err := client.CellcastV1alpha1().Placements().Create(ctx, &cellcastv1alpha1.Placement{
			Spec: cellcastv1alpha1.PlacementSpec{Workload: workload},
		}, options)
		switch {
		case err != nil:
			return err
		case answer.Status.Cell.Name == "":
			return errors.New("the answer names no cell")
		case (answer.Status.Credential == nil) != (len(options.DryRun) > 0):
			return errors.New("a credential comes with every placement but a dry run: this answer is wrong")
		default:
			return nil
		}
	}
}

// review asks whether the user may do what the other side does.
func (c *clients) review(ctx context.Context) error {
	answer, err := c.hub.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: cellcastv1alpha1.GroupName, Version: "v1alpha1", Resource: "placements", Verb: "create",
			},
		},
	}, metav1.CreateOptions{})
	if err == nil && !answer.Status.Allowed {
		err = errors.New("the user may not place")
	}
	return err
}

// requestToken asks the cell itself for what the mint asks it for.
func (c *clients) requestToken(ctx context.Context) error {
	_, err := c.cell.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](life)},
	}, metav1.CreateOptions{})
	return err
}
