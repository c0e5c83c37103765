// Command demo does cellcast's main job on real control planes: a hub and three
// cells on loopback, with nodes and pods for the agents to count, a small OIDC
// issuer in the place of a CI system, and a cluster that the fleet doesn't manage,
// with a node on which pods run where this machine can have one. `make demo` calls
// it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"cellcast.io/cellcast/test/world"
)

// folder is where the demo's state, kubeconfigs and logs are.
const folder = ".demo"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: demo run|up|down")
		os.Exit(2)
	}
	var err error
	switch os.Args[1] {
	case "run":
		err = run(ctx)
	case "up":
		err = up(ctx)
	case "down":
		err = down(ctx)
	case "issue": // what start runs beside the fleet
		err = issue(ctx, strings.Join(os.Args[2:], " "))
	default:
		err = fmt.Errorf("unknown command %q; there are run, up and down", os.Args[1])
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

// run starts the fleet, does the steps on it and stops it.
func run(ctx context.Context) error {
	if world.Runs(folder) {
		fmt.Println("demo: using the fleet that make demo-up left running")
		return steps(ctx)
	}
	fleet, err := start(ctx, false)
	if err != nil {
		return err
	}
	err = steps(ctx)
	if stopped := errors.Join(fleet.Stop(), removeTokenDir()); err == nil {
		err = stopped
	}
	return err
}

// up starts the fleet and leaves it running.
func up(ctx context.Context) error {
	if !world.Runs(folder) {
		if _, err := start(ctx, true); err != nil {
			return err
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	fmt.Printf(`
The fleet is up; make demo-down stops it. To use it:

  export PATH="%[1]s/bin:$PATH"
  export KUBECONFIG=%[1]s/%[2]s/hub.kubeconfig
  export CELLCAST_HUB=$(cat %[1]s/%[2]s/hub.url) CELLCAST_HUB_CA=%[1]s/%[2]s/hub-ca.pem CELLCAST_TOKEN_FILE=%[1]s/%[2]s/pipeline.token

  kubectl get clusters,placementpolicies
  cellcast cells
  cellcast place payments/api --explain

The first two exports are the hub's administrator; the third is the pipeline, which comes by the direct door and
wins over KUBECONFIG. As dana, a developer of the hub, through its API server, who has a namespace on another cluster:

  export KUBECONFIG=%[1]s/%[2]s/dana.kubeconfig; unset CELLCAST_HUB
  kubectl create placement web/shop
  cellcast target register shop -f %[1]s/%[2]s/acme.kubeconfig --namespace shop --create-credential -n team-a --wait
`, dir, folder)
	return nil
}

// down stops what up left running.
func down(ctx context.Context) error {
	ended, err := stop(ctx)
	if err != nil {
		return err
	}
	if len(ended) == 0 {
		fmt.Println("demo: nothing was running")
		return nil
	}
	fmt.Printf("demo: stopped %d processes\n", len(ended))
	return nil
}
