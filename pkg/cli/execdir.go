package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/kubeconfigfile"
)

// privateDir makes a directory that its owner alone can enter: where a CI runner
// cleans up after the job, else where nothing reaches a disk, else anywhere.
func (e Env) privateDir() (string, error) {
	var failed []error
	for _, base := range []string{e.Getenv("RUNNER_TEMP"), e.Getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		if !filepath.IsAbs(base) {
			continue
		}
		dir, err := os.MkdirTemp(base, "cellcast-exec-*")
		if err == nil {
			return dir, nil
		}
		failed = append(failed, err)
	}
	return "", fmt.Errorf("make a private directory for the kubeconfig: %w", errors.Join(failed...))
}

func (e Env) removeDir(dir string) {
	if err := os.RemoveAll(dir); err != nil {
		e.say("Warning: %s, which holds a credential, can't be removed: %v", dir, err)
	}
}

// writeKubeconfig moves the token from the answer into a file.
func writeKubeconfig(dir string, answer *cellcastv1alpha1.Placement) (string, error) {
	s := answer.Status
	content, err := kubeconfigfile.KubeconfigOf(s.Cell, *s.Credential, kubeconfigfile.Origin{Workload: answer.Spec.Workload, RequestID: s.RequestID})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "kubeconfig")
	file, err := kubeconfigfile.Reserve(path)
	if err != nil {
		return "", err
	}
	answer.Status.Credential.Token = ""
	return path, file.Commit(content)
}
