package world_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/test/world"
	"cellcast.io/cellcast/test/world/worldtest"
)

func TestDeploy(t *testing.T) {
	w := worldtest.Start(t, world.Options{Cells: []world.CellOptions{{Name: "a"}}})
	ctx, a := t.Context(), w.Cell("a")
	began := time.Now()
	if err := w.Hub.Deploy(ctx, world.ServerOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("cellcast was deployed after %s", time.Since(began).Round(100*time.Millisecond))
	admin := versioned.NewForConfigOrDie(w.Hub.Admin.Config())

	if _, err := admin.CellcastV1alpha1().Cells().List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("the aggregated API doesn't work at once: %v", err)
	}
	wrong := a.Cluster()
	wrong.Spec.CABundle = []byte("no certificate")
	if _, err := admin.RegistryV1alpha1().Clusters().Create(ctx, wrong, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "denied the request") {
		t.Errorf("the webhook isn't asked at once: %v", err)
	}

	if err := a.Install(ctx, "payments/deployer"); err != nil {
		t.Fatal(err)
	}
	if err := a.AddNode(ctx, "n1", corev1.ResourceList{
		"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110"),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RegistryV1alpha1().Clusters().Create(ctx, a.Cluster(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := a.StartAgent(ctx, w.Hub.Server, "--leader-elect=true", "--interval=1s"); err != nil {
		t.Fatal(err)
	}
	poll(t, "the cell's report has come in", func() bool {
		cell, err := admin.CellcastV1alpha1().Cells().Get(ctx, "a", metav1.GetOptions{})
		return err == nil && cell.Status.Capacity == cellcastv1alpha1.CapacityFresh
	})

	alice, err := w.Hub.User("alice")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := versioned.NewForConfigOrDie(alice.Config()).CellcastV1alpha1().Placements().Create(ctx,
		&cellcastv1alpha1.Placement{}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user without a role got %v, want 403", err)
	}

	t.Run("a replica serves beside the first", func(t *testing.T) {
		replica, err := w.Hub.AddReplica(ctx, world.ServerOptions{Name: "cellcast-hub-1", Args: []string{"--warmup-timeout=1s"}})
		if err != nil {
			t.Fatal(err)
		}
		if replica.URL == w.Hub.Server.URL || replica.PID() == w.Hub.Server.PID() {
			t.Errorf("replica %s, process %d, is the first", replica.URL, replica.PID())
		}
	})
	t.Run("a cell that starts anew finds the mirror of the real hub", func(t *testing.T) {
		if err := a.APIServer.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		untilTrusted(t, w, a)
	})
}
