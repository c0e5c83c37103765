// Command bench measures what a decision costs, and what a placement costs
// beside a request that every Kubernetes cluster answers anyway. `make bench`
// runs it.
//
// A number is a line `bench NAME VALUE UNIT`; whether a goal is met follows in
// words. A missed goal isn't an error: on a loaded machine it says nothing yet.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"cellcast.io/cellcast/test/world"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &report{out: os.Stdout})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, r *report) error {
	r.say("%d cores, %s, %s/%s", runtime.GOMAXPROCS(0), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err := measureDecisions(r); err != nil {
		return fmt.Errorf("measuring decisions: %w", err)
	}
	err := world.HaveAssets()
	if errors.Is(err, world.ErrNoAssets) && os.Getenv("CELLCAST_REQUIRE_WORLD") != "1" {
		r.say("requests are not measured: %v", err)
		return nil
	}
	if err := measureRequests(ctx, r); err != nil {
		return fmt.Errorf("measuring requests: %w", err)
	}
	return nil
}
