package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// NodeName is what a cell's node is called there.
	NodeName = "node"
	// CanaryImage is the image of cellcast-canary. Every node has it, and
	CanaryImage = "cellcast.io/canary:dev"
	// PauseImage, that of a program which waits until it's told to end.
	PauseImage = "cellcast.io/pause:dev"
)

// Node is a real node: pods run on it. They reach each other and Address, and
// nothing else: there is no registry, no DNS and no Service network. An image has
// to be imported. What pods write is in memory; their logs are with the others.
type Node struct {
	// Address is this machine as pods see it, and the node's own address. It
	// can't be reached from elsewhere.
	Address string
	// Containerd and Kubelet are its processes, Scheduler that of its cell.
	Containerd, Kubelet, Scheduler *Process

	cell    *Cell
	enclave *enclave
}

// HaveNode returns nil where a cell can have a node, else why it can't.
func HaveNode() error {
	a, err := findAssets("")
	if err != nil {
		return err
	}
	return a.haveNode()
}

func (a assets) haveNode() error {
	if err := permitted(); err != nil {
		return fmt.Errorf("no node can run here: %w", err)
	}
	if _, err := exec.LookPath("runc"); err != nil {
		return errors.New("no node can run here: runc isn't installed (Debian: apt-get install runc)")
	}
	if _, err := plugins(); err != nil {
		return err
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "kubelet", "kube-scheduler"} {
		if !executable(filepath.Join(a.kube, name)) {
			return fmt.Errorf("no node can run here: %s has no %s: run make kube and unset KUBEBUILDER_ASSETS", a.kube, name)
		}
	}
	if !executable(a.pause()) {
		return fmt.Errorf("no node can run here: %s isn't built: run make build", a.pause())
	}
	for _, archive := range a.images() {
		if _, err := os.Stat(archive); err != nil {
			return fmt.Errorf("no node can run here: %s isn't built: run make build", archive)
		}
	}
	return nil
}

// images are the archives that a node starts with.
func (a assets) images() []string {
	dir := filepath.Join(a.root, "bin", "images")
	return []string{filepath.Join(dir, "pause.tar"), filepath.Join(dir, "cellcast-canary.tar")}
}

// pause is the program that does nothing.
func (a assets) pause() string { return filepath.Join(a.root, "bin", "images", "pause") }

// seen returns nil when a node sees the folder: each has its own of some.
func seen(dir string) error {
	for _, own := range []string{"/run", "/var/lib", "/var/log"} {
		if strings.HasPrefix(dir+"/", own+"/") {
			return fmt.Errorf("a world with a node can't be in %s: a node has a %s of its own", dir, own)
		}
	}
	return nil
}

// plugins returns the folder of the CNI plugins: Debian's, or the one that
// everybody else uses.
func plugins() (string, error) {
	folders := []string{"/usr/lib/cni", "/opt/cni/bin"}
	for _, dir := range folders {
		if executable(filepath.Join(dir, "bridge")) && executable(filepath.Join(dir, "host-local")) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no node can run here: the CNI plugins bridge and host-local are in none of %s (Debian: apt-get install containernetworking-plugins)",
		strings.Join(folders, ", "))
}

// newNode makes the cell's node in the enclave; nothing but that runs yet.
func newNode(c *Cell, e *enclave) (*Node, error) {
	n := &Node{Address: e.address.String(), cell: c, enclave: e}
	containerd, err := n.containerdConfig()
	if err != nil {
		return nil, err
	}
	kubelet, err := n.kubeletFlags()
	if err != nil {
		return nil, err
	}
	add := func(name string, start func(*exec.Cmd) error, ready func(context.Context) error, args ...string) *Process {
		return c.world.table.add(command{
			name: c.Name + "-" + name, path: filepath.Join(c.world.assets.kube, name), args: args, start: start, ready: ready,
		})
	}
	n.Containerd = add("containerd", e.inside, n.answers, "--config="+containerd)
	n.Kubelet = add("kubelet", e.beside, n.ready, kubelet...)
	n.Scheduler = add("kube-scheduler", nil, nil,
		"--kubeconfig="+c.Admin.Kubeconfig, "--leader-elect=false", "--secure-port=0")
	return n, nil
}

// startRuntime starts what needs no API server.
func (n *Node) startRuntime(ctx context.Context) error {
	if err := n.Containerd.Start(ctx); err != nil {
		return err
	}
	for _, archive := range n.cell.world.assets.images() {
		if err := n.importImage(ctx, archive); err != nil {
			return err
		}
	}
	return nil
}

// ImportImage puts the image of an archive onto the cell's node, under the name
// that it has there. Pods find it unless they ask to pull always.
func (c *Cell) ImportImage(ctx context.Context, archive string) error {
	if c.Node == nil {
		return fmt.Errorf("%s has no node: set CellOptions.Node", c.Name)
	}
	return c.Node.importImage(ctx, archive)
}

func (n *Node) importImage(ctx context.Context, archive string) error {
	content, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("importing an image: %w", err)
	}
	defer content.Close()
	if err := n.ctr(ctx, content, "images", "import", "-"); err != nil {
		return fmt.Errorf("importing %s: %w", archive, err)
	}
	return nil
}

// answers returns nil when containerd answers.
func (n *Node) answers(ctx context.Context) error { return n.ctr(ctx, nil, "version") }

func (n *Node) ctr(ctx context.Context, stdin io.Reader, args ...string) error {
	return n.enclave.run(ctx, stdin, filepath.Join(n.cell.world.assets.kube, "ctr"),
		append([]string{"--address=" + containerdSocket, "--namespace=k8s.io"}, args...)...)
}

// ready returns nil when the node is.
func (n *Node) ready(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(n.cell.Admin.config)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", n.cell.Name, err)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, NodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			if condition.Status == corev1.ConditionTrue {
				return nil
			}
			return fmt.Errorf("the node isn't ready: %s: %s", condition.Reason, condition.Message)
		}
	}
	return errors.New("the node doesn't say yet whether it's ready")
}
