package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"cellcast.io/cellcast/test/world"
)

// Main runs the tests of a package on the one fleet that start makes in a folder,
// and returns their exit code. Where no control plane is built it runs them
// without a fleet, so that those which need one can skip.
func Main(tests interface{ Run() int }, name string, start func(ctx context.Context, dir string) (*Fleet, error)) int {
	err := world.HaveAssets()
	if errors.Is(err, world.ErrNoAssets) && os.Getenv("CELLCAST_REQUIRE_WORLD") != "1" {
		fmt.Printf("skipping every %s test that needs a fleet: %v\n", name, err)
		return tests.Run()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "cellcast-"+name+"-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fleet, err := start(ctx, dir)
	if err != nil {
		fmt.Printf("the fleet didn't start; its logs are in %s/logs\n%v\n", dir, err)
		return 1
	}
	// An interrupt ends the fleet; no test could go on without it.
	forget := context.AfterFunc(ctx, func() {
		_ = fleet.Stop()
		os.Exit(1)
	})
	code := tests.Run()
	forget()
	if err := fleet.Stop(); err != nil {
		fmt.Println(err)
		return 1
	}
	if code != 0 {
		fmt.Printf("the fleet's logs are kept in %s/logs\n", dir)
		return code
	}
	_ = os.RemoveAll(dir)
	return 0
}
