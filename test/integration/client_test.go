package integration

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// job runs the client as a CI job of the repository does, and returns what it
// wrote and its exit code.
func job(t *testing.T, repositoryID string, args ...string) (string, int) {
	t.Helper()
	signed, err := hub.Token(repositoryID, nil)
	if err != nil {
		t.Fatal(err)
	}
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "oidc.jwt")
	if err := os.WriteFile(token, []byte(signed), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "cellcast"), args...)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG=",
		"CELLCAST_HUB="+hub.Hub.Door().URL, "CELLCAST_HUB_CA="+hub.Hub.Door().CAFile, "CELLCAST_TOKEN_FILE="+token,
		"CELLCAST_CACHE_DIR="+filepath.Join(t.TempDir(), "cache"))
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if strings.Contains(string(output), "eyJ") {
		t.Errorf("%v shows a token:\n%s", args, output)
	}
	return string(output), cmd.ProcessState.ExitCode()
}

func TestExecGivesItsCommandACredentialThatEndsWithIt(t *testing.T) {
	require(t)
	name := unique(t)
	policy(t, name, revocable)
	kept := filepath.Join(t.TempDir(), "kept.kubeconfig")
	output, exit := job(t, name, "exec", "--workload", "payments/api", "--",
		"sh", "-c", "cp $KUBECONFIG "+kept+"; echo on $CELLCAST_CELL; exit 7")
	if exit != 7 || !strings.Contains(output, "\non prod-") {
		t.Fatalf("exit %d:\n%s", exit, output)
	}
	// Nobody showed the token to the cell yet, so that the cell remembers nothing.
	if output, err := kubectl(t, kept, "auth", "whoami"); err == nil || !strings.Contains(output, "Unauthorized") {
		t.Errorf("a copy of the kubeconfig is still good: %v\n%s", err, output)
	}
}

func TestKubectlGetsItsTokenFromTheExecPlugin(t *testing.T) {
	require(t)
	name := unique(t)
	policy(t, name, func(spec *registryv1alpha1.PlacementPolicySpec) { spec.AllowCellSelection = true })
	output, exit := job(t, name, "credential", "kubeconfig", "--cell", "prod-eu", "--workload", "payments/api")
	if exit != 0 {
		t.Fatalf("exit %d:\n%s", exit, output)
	}
	file := filepath.Join(t.TempDir(), "plugin.kubeconfig")
	if err := os.WriteFile(file, []byte(output), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := kubectl(t, file, "auth", "whoami"); err != nil || !strings.Contains(output, "system:serviceaccount:payments:deployer") {
		t.Errorf("%v\n%s", err, output)
	}
}

// What an operator finds by the id that a job's log has.
func TestThePrintedIDIsThatOfTheTrail(t *testing.T) {
	require(t)
	name := unique(t)
	output, exit := job(t, name, "place", "payments/api")
	_, id, _ := strings.Cut(strings.TrimSpace(output), "Request id: ")
	if exit != 3 || id == "" {
		t.Fatalf("exit %d:\n%s", exit, output)
	}
	if log := read(t, hub.Hub.Server.LogFile()); !strings.Contains(log, `"request_id":"`+id+`"`) {
		t.Errorf("no record has the request id %s", id)
	}
}

// Events are lossy; of a quiet cell they are all there.
func TestAClusterShowsWhoHasBeenDeploying(t *testing.T) {
	require(t)
	name := unique(t)
	policy(t, name, nil)
	if _, err := place(t.Context(), pipeline(t, name), ask("payments/"+name[:10])); err != nil {
		t.Fatal(err)
	}
	admin, err := kubernetes.NewForConfig(hub.Hub.Admin.Config())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the placement is an Event", func(ctx context.Context) error {
		for _, cell := range []string{"prod-eu", "prod-us"} {
			list, err := admin.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Cluster,involvedObject.name=" + cell})
			if err != nil {
				return err
			}
			for _, event := range list.Items {
				if strings.Contains(event.Message, name[:10]) {
					return nil
				}
			}
		}
		return errors.New("no Event speaks of it")
	})
}
