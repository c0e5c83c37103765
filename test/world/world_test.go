package world_test

import (
	"bytes"
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"cellcast.io/cellcast/test/world"
	"cellcast.io/cellcast/test/world/worldtest"
)

// One world serves all questions that leave it as it was.
func TestWorld(t *testing.T) {
	began := time.Now()
	w := worldtest.Start(t, world.Options{Cells: []world.CellOptions{
		{Name: "a", Labels: map[string]string{"env": "prod"}}, {Name: "b", Controllers: true}, {Name: "c"},
	}})
	t.Logf("a hub and three cells were up after %s", time.Since(began).Round(100*time.Millisecond))
	ctx := t.Context()
	if err := w.Hub.Install(ctx); err != nil {
		t.Fatal(err)
	}
	a, b := w.Cell("a"), w.Cell("b")

	t.Run("a cell knows the hub by its own token, under its prefixed name", func(t *testing.T) {
		got, err := whoAmI(ctx, hubAt(t, w, a, a.Audience))
		if err != nil {
			t.Fatal(err)
		}
		if want := "cellcast-hub:system:serviceaccount:cellcast-system:cellcast-hub"; got != want {
			t.Errorf("the hub is %q, want %q", got, want)
		}
	})
	t.Run("a cell refuses the token that was issued for another", func(t *testing.T) {
		if _, err := whoAmI(ctx, hubAt(t, w, a, b.Audience)); !apierrors.IsUnauthorized(err) {
			t.Errorf("got %v, want 401", err)
		}
	})
	t.Run("a cell refuses another ServiceAccount of the hub", func(t *testing.T) {
		if err := w.Hub.EnsureServiceAccount(ctx, world.Namespace, "other"); err != nil {
			t.Fatal(err)
		}
		token, err := w.Hub.Token(ctx, world.Namespace, "other", time.Hour, a.Audience)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := whoAmI(ctx, bearer(a, token)); !apierrors.IsUnauthorized(err) {
			t.Errorf("got %v, want 401", err)
		}
	})
	t.Run("cells share an issuer and still refuse each other's tokens", func(t *testing.T) {
		if a.Issuer != b.Issuer {
			t.Fatalf("issuers %q and %q differ", a.Issuer, b.Issuer)
		}
		token, err := b.Token(ctx, "default", "default", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := whoAmI(ctx, bearer(b, token)); err != nil {
			t.Errorf("its own cell: %v", err)
		}
		if _, err := whoAmI(ctx, bearer(a, token)); !apierrors.IsUnauthorized(err) {
			t.Errorf("the other cell: got %v, want 401", err)
		}
	})
	t.Run("the hub mints what it may and nothing else", func(t *testing.T) {
		if err := a.Install(ctx, "payments/deployer"); err != nil {
			t.Fatal(err)
		}
		if err := a.EnsureServiceAccount(ctx, "payments", "other"); err != nil {
			t.Fatal(err)
		}
		client := kubernetes.NewForConfigOrDie(hubAt(t, w, a, a.Audience))
		mint := func(namespace, name string) error {
			_, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			return err
		}
		// Roles count a moment after they're written.
		poll(t, "the hub mints for payments/deployer, and reads the cell's keys", func() bool {
			_, err := client.Discovery().RESTClient().Get().AbsPath("/openid/v1/jwks").DoRaw(ctx)
			return err == nil && mint("payments", "deployer") == nil
		})
		if err := mint("payments", "other"); !apierrors.IsForbidden(err) {
			t.Errorf("payments/other: got %v, want 403", err)
		}
		if err := mint("cellcast-system", "cellcast-agent"); !apierrors.IsForbidden(err) {
			t.Errorf("cellcast-system/cellcast-agent: got %v, want 403", err)
		}
	})
	t.Run("controllers issue a ServiceAccount's long-lived token, and fill the role admin", func(t *testing.T) { controllersWork(t, b) })
	t.Run("a user by certificate is that user, in those groups", func(t *testing.T) {
		user, err := w.Hub.User("alice", "deployers")
		if err != nil {
			t.Fatal(err)
		}
		review, err := kubernetes.NewForConfigOrDie(user.Config()).AuthenticationV1().SelfSubjectReviews().
			Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		info := review.Status.UserInfo
		if diff := cmp.Diff([]string{"deployers", "system:authenticated"}, info.Groups); info.Username != "alice" || diff != "" {
			t.Errorf("user %q, groups (-want +got):\n%s", info.Username, diff)
		}
		file, err := os.Stat(user.Kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		if file.Mode().Perm() != 0o600 {
			t.Errorf("the kubeconfig has mode %o, want 600", file.Mode().Perm())
		}
	})
	t.Run("nodes and pods are there for an agent to add up", func(t *testing.T) {
		room := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")}
		if err := a.AddNode(ctx, "n1", room); err != nil {
			t.Fatal(err)
		}
		if err := a.AddPod(ctx, "load", "p1", "n1", corev1.ResourceList{"cpu": resource.MustParse("500m")}); err != nil {
			t.Fatal(err)
		}
		client := kubernetes.NewForConfigOrDie(a.Admin.Config())
		node, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(node.Spec.Taints) > 0 || node.Status.Allocatable.Cpu().String() != "4" || node.Status.Conditions[0].Type != corev1.NodeReady {
			t.Errorf("the node is %+v, %+v", node.Spec, node.Status)
		}
		pod, err := client.CoreV1().Pods("load").Get(ctx, "p1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if pod.Spec.NodeName != "n1" || pod.Status.Phase != corev1.PodRunning {
			t.Errorf("the pod is on %q, %s", pod.Spec.NodeName, pod.Status.Phase)
		}
	})
	t.Run("an API server that is stopped is away, and comes back with its state and its trust", func(t *testing.T) {
		before := a.APIServer.PID()
		if err := a.APIServer.Stop(); err != nil {
			t.Fatal(err)
		}
		if _, err := whoAmI(ctx, a.Admin.Config()); err == nil || a.APIServer.PID() != 0 {
			t.Errorf("stopped, it has pid %d and answers with %v", a.APIServer.PID(), err)
		}
		if err := a.APIServer.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if after := a.APIServer.PID(); after == before || after == 0 {
			t.Errorf("it was process %d and is %d", before, after)
		}
		if _, err := kubernetes.NewForConfigOrDie(a.Admin.Config()).CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		untilTrusted(t, w, a)
	})
	t.Run("a process that is running can't be started again", func(t *testing.T) {
		err := w.Etcd.Start(ctx)
		if want := "starting etcd: it is already running"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
	t.Run("the audit log says who asked for a token, and holds none", func(t *testing.T) {
		log, err := os.ReadFile(a.AuditLog)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(log, []byte(`"username":"cellcast-hub:system:serviceaccount:cellcast-system:cellcast-hub"`)) ||
			!bytes.Contains(log, []byte(`"subresource":"token"`)) {
			t.Error("the hub's mint isn't in the audit log")
		}
		if bytes.Contains(log, []byte("eyJ")) {
			t.Error("a token is in the audit log")
		}
	})

	pids := untilRecorded(t, w.Dir, 6)
	if len(pids) != 6 {
		t.Errorf("%d processes run, want etcd, four API servers and one controller manager", len(pids))
	}
	began = time.Now()
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("all was down after %s", time.Since(began).Round(10*time.Millisecond))
	if slices.ContainsFunc(pids, alive) {
		t.Errorf("of the processes %v, one outlived the world", pids)
	}
	if err := w.Etcd.Start(ctx); err == nil {
		t.Error("a process could be started after Stop")
	}
}

// hubAt is the hub as it appears at the cell with a token for that audience.
func hubAt(t *testing.T, w *world.World, c *world.Cell, audience string) *rest.Config {
	t.Helper()
	token, err := w.Hub.Token(t.Context(), world.Namespace, world.HubServiceAccount, time.Hour, audience)
	if err != nil {
		t.Fatal(err)
	}
	return bearer(c, token)
}

// untilTrusted waits until the cell, started anew, knows the hub: it reads the
// mirror after it is ready, and once more only ten seconds after it couldn't.
func untilTrusted(t *testing.T, w *world.World, c *world.Cell) {
	t.Helper()
	config := hubAt(t, w, c, c.Audience)
	poll(t, c.Name+" knows the hub", func() bool {
		_, err := whoAmI(t.Context(), config)
		return err == nil
	})
}

func bearer(c *world.Cell, token string) *rest.Config {
	config := rest.AnonymousClientConfig(c.Admin.Config())
	config.BearerToken = token
	return config
}

func whoAmI(ctx context.Context, config *rest.Config) (string, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}
