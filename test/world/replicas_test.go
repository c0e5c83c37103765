package world_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/test/world"
	"cellcast.io/cellcast/test/world/worldtest"
)

func TestReplicas(t *testing.T) {
	w := worldtest.Start(t, world.Options{Cells: []world.CellOptions{{Name: "a"}}})
	ctx, a := t.Context(), w.Cell("a")
	// A replica is ready only when it has heard from the cell.
	if err := w.Hub.Deploy(ctx, world.ServerOptions{Replicas: 2, Args: []string{"--warmup-timeout=10m"}}); err != nil {
		t.Fatal(err)
	}
	admin := versioned.NewForConfigOrDie(w.Hub.Admin.Config())
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
	if err := a.StartAgent(ctx, w.Hub.Door(), "--interval=1s"); err != nil {
		t.Fatal(err)
	}
	poll(t, "the cell's report has come in", func() bool { return fresh(ctx, admin) })

	t.Run("each is terminated and replaced, and nobody notices", func(t *testing.T) {
		asking, stop := context.WithCancel(ctx)
		var asker sync.WaitGroup
		asked := 0
		asker.Go(func() {
			for ; asking.Err() == nil; asked++ {
				if _, err := admin.CellcastV1alpha1().Cells().List(ctx, metav1.ListOptions{}); err != nil {
					t.Errorf("question %d: %v", asked, err)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
		for _, server := range w.Hub.Servers {
			began, before := time.Now(), server.PID()
			// The balancer doesn't lead agents to it until it's ready, so what it
			// knows of the cell is what its peer told it.
			if err := server.Restart(ctx); err != nil {
				t.Error(err)
			}
			t.Logf("%s was replaced in %s", server.Name(), time.Since(began).Round(100*time.Millisecond))
			if server.PID() == before {
				t.Errorf("%s is still the same process", server.Name())
			}
		}
		stop()
		asker.Wait()
		t.Logf("%d questions were asked meanwhile", asked)
	})
	t.Run("one is killed, and the other serves", func(t *testing.T) {
		if err := w.Hub.Servers[0].Kill(); err != nil {
			t.Fatal(err)
		}
		poll(t, "the other one serves", func() bool { return fresh(ctx, admin) })
		if err := w.Hub.Servers[0].Start(ctx); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("the relay is for replicas alone", func(t *testing.T) { relayIsForReplicas(t, w) })
	t.Run("a replica in a pod may look for its peers", func(t *testing.T) {
		replica, err := w.Hub.AddReplica(ctx, world.ServerOptions{Name: "cellcast-hub-slices", Args: []string{"--warmup-timeout=1s"}})
		if err != nil {
			t.Fatal(err)
		}
		log, err := os.ReadFile(replica.LogFile())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(log), "forbidden") {
			t.Errorf("the log says:\n%s", log)
		}
	})
}

// fresh says whether a replica that answers knows the cell's capacity.
func fresh(ctx context.Context, admin versioned.Interface) bool {
	cell, err := admin.CellcastV1alpha1().Cells().Get(ctx, "a", metav1.GetOptions{})
	return err == nil && cell.Status.Capacity == cellcastv1alpha1.CapacityFresh
}

func relayIsForReplicas(t *testing.T, w *world.World) {
	token := func(account, audience string) string {
		t.Helper()
		token, err := w.Hub.Token(t.Context(), world.Namespace, account, 10*time.Minute, audience)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	if err := w.Hub.EnsureServiceAccount(t.Context(), world.Namespace, "other"); err != nil {
		t.Fatal(err)
	}
	peer := token(world.HubServiceAccount, "cellcast.io/peers")
	batch := fmt.Sprintf(`{"from":"a-test","number":1,"sentAt":%q}`, time.Now().UTC().Format(time.RFC3339Nano))
	const relay = "/relay/v1/batch"
	steps := []struct {
		name, path, token, body string
		want                    int
	}{
		{"nobody relays", relay, "", batch, 401},
		{"the hub relays with the token that it shows to a cell", relay, token(world.HubServiceAccount, "cellcast:cell:a"), batch, 401},
		{"another ServiceAccount relays", relay, token("other", "cellcast.io/peers"), batch, 401},
		{"a replica relays", relay, peer, batch, 200},
		{"a batch is replayed", relay, peer, batch, 409},
		{"a replica relays what can't be read", relay, peer, `{"unknown":1}`, 400},
		{"a replica posts beside the relay", "/relay/v1/other", peer, batch, 401},
		{"a replica asks for a placement", "/apis/cellcast.io/v1alpha1/placements", peer, "{}", 401},
		{"a replica asks for discovery", "/apis", peer, "", 401},
	}
	for _, step := range steps {
		code, answer := post(t, w, step.path, step.token, step.body)
		if code != step.want {
			t.Errorf("%s: %d %s, want %d", step.name, code, answer, step.want)
		}
	}
}

// post sends to the first replica.
func post(t *testing.T, w *world.World, path, token, body string) (int, string) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.Hub.ServerCABundle)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.Hub.Servers[0].URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}
