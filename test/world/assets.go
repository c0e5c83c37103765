package world

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrNoAssets says that there is no kube-apiserver or etcd to start.
var ErrNoAssets = errors.New("no control plane is built: run make kube")

// assets are the folders that programs are started from.
type assets struct {
	// root is the repository.
	root string
	// kube holds etcd and Kubernetes, programs the binaries of cellcast.
	kube, programs string
}

// HaveAssets returns nil where a control plane is built, else ErrNoAssets.
func HaveAssets() error {
	_, err := findAssets("")
	return err
}

// findAssets looks in KUBEBUILDER_ASSETS where that is set, else in the
// repository's bin. An empty programs means the repository's bin as well.
func findAssets(programs string) (assets, error) {
	root, err := repository()
	if err != nil {
		return assets{}, err
	}
	a := assets{root: root, kube: os.Getenv("KUBEBUILDER_ASSETS"), programs: programs}
	if a.kube == "" {
		a.kube = filepath.Join(root, "bin")
	}
	if a.programs == "" {
		a.programs = filepath.Join(root, "bin")
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if !executable(filepath.Join(a.kube, name)) {
			return assets{}, fmt.Errorf("%w (%s has no %s)", ErrNoAssets, a.kube, name)
		}
	}
	return a, nil
}

// kubectl returns the path of kubectl, or nothing where there is none.
func (a assets) kubectl() string {
	if path := filepath.Join(a.kube, "kubectl"); executable(path) {
		return path
	}
	return ""
}

// artifact returns the path of a file under artifacts.
func (a assets) artifact(elem ...string) string {
	return filepath.Join(append([]string{a.root, "artifacts"}, elem...)...)
}

// repository returns the root of cellcast's module, found upwards from the
// working directory.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte("module cellcast.io/cellcast\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the working directory isn't in cellcast's repository: run from there")
		}
		dir = parent
	}
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
