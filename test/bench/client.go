package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// starts is how often each program is started.
const starts = 40

// measureClient builds the client as a release does, weighs it, and compares how
// long it takes to start with kubectl.
func measureClient(ctx context.Context, r *report) error {
	dir, err := os.MkdirTemp("", "cellcast-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	client := filepath.Join(dir, "cellcast")
	if err := buildClient(ctx, client); err != nil {
		return err
	}
	r.say("\nClient: built without cgo, symbols and paths (-trimpath -ldflags '-s -w'); the archive is a tar.gz at level 9.")
	binary, err := os.Stat(client)
	if err != nil {
		return err
	}
	archive, err := archiveSize(client, binary)
	if err != nil {
		return err
	}
	r.result("client_binary_bytes", float64(binary.Size()), "bytes")
	r.result("client_archive_bytes", float64(archive), "bytes")
	return compareStarts(ctx, r, client)
}

func buildClient(ctx context.Context, to string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to, "cellcast.io/cellcast/cmd/cellcast")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the client: %w\n%s", err, out)
	}
	return nil
}

// archiveSize is how many bytes the program has in an archive.
func archiveSize(path string, info os.FileInfo) (n counter, err error) {
	program, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer program.Close()
	compressed, err := gzip.NewWriterLevel(&n, gzip.BestCompression)
	if err != nil {
		return 0, err
	}
	archive := tar.NewWriter(compressed)
	if err := archive.WriteHeader(&tar.Header{Name: info.Name(), Mode: 0o755, Size: info.Size()}); err != nil {
		return 0, err
	}
	if _, err := io.Copy(archive, program); err != nil {
		return 0, err
	}
	err = errors.Join(archive.Close(), compressed.Close())
	return n, err
}

// counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// compareStarts starts the client and the kubectl of the control planes in
// alternation, each as a new process that prints its version and ends.
func compareStarts(ctx context.Context, r *report, client string) error {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		dir = "bin"
	}
	kubectl, err := filepath.Abs(filepath.Join(dir, "kubectl"))
	if err != nil {
		return err
	}
	if _, err := os.Stat(kubectl); err != nil {
		r.say("the client's start isn't compared: there is no kubectl to compare it with; run make kube")
		return nil
	}
	ours := side{"client_start", start(client, "version")}
	theirs := side{"kubectl_start", start(kubectl, "version", "--client")}
	var took, beside []time.Duration
	for i := range starts + 3 {
		a, err := ours.time(ctx)
		if err != nil {
			return err
		}
		b, err := theirs.time(ctx)
		if err != nil {
			return err
		}
		if i >= 3 { // by then both are in the page cache
			took, beside = append(took, a), append(beside, b)
		}
	}
	r.say("Each is started %d times, in alternation: `cellcast version` and `kubectl version --client`.", starts)
	ratio := r.spread(ours.name, newTimes(took)) / r.spread(theirs.name, newTimes(beside))
	r.result("client_start_over_kubectl_p50", ratio, "ratio")
	r.result("client_start_over_kubectl_min", float64(slices.Min(took))/float64(slices.Min(beside)), "ratio")
	r.atMost("client_start_over_kubectl_p50", ratio, 0.1)
	return nil
}

// start runs a program to its end.
func start(program string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		return exec.CommandContext(ctx, program, args...).Run()
	}
}
