package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"cellcast.io/cellcast/test/world"
)

const (
	// brought is the cluster that the fleet doesn't manage, and shop the namespace
	// of it that the developer administers.
	brought = "acme"
	shop    = "shop"
	// noNode is the file that says why no pod runs on it. It isn't there where
	// pods do.
	noNode = "no-node"
)

// acme is the cluster: with a node on which pods run, or where this machine can't
// have one, with controllers alone.
func acme() (world.CellOptions, error) {
	options := world.CellOptions{Name: brought, Controllers: true}
	if missing := world.HaveNode(); missing != nil {
		fmt.Printf("demo: %v; the steps that need a pod are left out\n", missing)
		return options, write(noNode, []byte(missing.Error()))
	}
	options.Node = true
	return options, nil
}

// podless says why no pod runs in the fleet that is up; empty where pods do.
func podless() (string, error) {
	why, err := os.ReadFile(filepath.Join(folder, noNode))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return string(why), err
}

// targetFlags are the flags with which the hub takes brought targets, on loopback
// and on whatever port.
func targetFlags(w *world.World) ([]string, error) {
	tokens, err := makeTokenDir()
	if err != nil {
		return nil, err
	}
	if err := write("ingest-ca.pem", w.Hub.ServerCABundle); err != nil {
		return nil, err
	}
	return append(tokens,
		"--target-allow-addresses=127.0.0.0/8", "--target-ports=1024-65535", "--target-rescan=10s",
		"--canary-image="+world.CanaryImage, "--ingest-ca-file="+filepath.Join(w.Dir, "ingest-ca.pem")), nil
}

// give lets the developer have a namespace of the hub, and one of acme.
func give(ctx context.Context, w *world.World) error {
	cluster := w.Cell(brought)
	for path, where := range map[string]*world.ControlPlane{"team-a.yaml": w.Hub.ControlPlane, "shop.yaml": cluster.ControlPlane} {
		manifest, err := os.ReadFile(filepath.Join("hack", "demo", path))
		if err != nil {
			return err
		}
		if err := where.Apply(ctx, manifest); err != nil {
			return err
		}
	}
	user, err := cluster.User(developer)
	if err != nil {
		return err
	}
	if err := link(user.Kubeconfig, brought+".kubeconfig"); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(user.Config())
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = given(ctx, client)
		return last == nil, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("%s of %s isn't ready: %w", shop, brought, last)
	}
	return err
}

// given returns nil once the cluster's controllers have made of the namespace
// what its administrator can use.
func given(ctx context.Context, client kubernetes.Interface) error {
	for _, may := range []authorizationv1.ResourceAttributes{
		{Verb: "create", Resource: "serviceaccounts"}, {Verb: "get", Resource: "namespaces"},
		{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "roles"},
	} {
		may.Namespace = shop
		review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &may},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if !review.Status.Allowed {
			return fmt.Errorf("%s may not %s %s there", developer, may.Verb, may.Resource)
		}
	}
	_, err := client.CoreV1().ServiceAccounts(shop).Get(ctx, "default", metav1.GetOptions{})
	return err
}
