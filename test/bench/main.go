// Command bench measures what a decision costs, what a placement costs beside a
// request that every Kubernetes cluster answers anyway, how large the client is
// and how fast it starts, and how long a hub's memory remembers tokens.
// `make bench` runs all of it; arguments name the sections to run:
//
//	go run ./test/bench decisions client requests memory
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
	"slices"
	"strings"
	"syscall"

	"cellcast.io/cellcast/test/world"
)

// section is a part of the benchmark.
type section struct {
	name string
	// fleet says that it needs one, and so control planes to start.
	fleet   bool
	measure func(context.Context, *report) error
}

func sections() []section {
	return []section{
		{"decisions", false, measureDecisions},
		{"client", false, measureClient},
		{"requests", true, measureRequests},
		{"memory", true, measureMemory},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &report{out: os.Stdout}, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures the sections of these names, or all.
func run(ctx context.Context, r *report, names []string) error {
	chosen, err := choose(sections(), names)
	if err != nil {
		return err
	}
	r.say("%d cores, %s, %s/%s", runtime.GOMAXPROCS(0), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	without := world.HaveAssets()
	if without != nil && (!errors.Is(without, world.ErrNoAssets) || os.Getenv("CELLCAST_REQUIRE_WORLD") == "1") {
		return without
	}
	for _, s := range chosen {
		if s.fleet && without != nil {
			r.say("\n%s: not measured: %v", s.name, without)
			continue
		}
		if err := s.measure(ctx, r); err != nil {
			return fmt.Errorf("measuring %s: %w", s.name, err)
		}
	}
	return nil
}

// choose returns the sections of these names in their own order.
func choose(all []section, names []string) (chosen []section, err error) {
	left := slices.Clone(names)
	var known []string
	for _, s := range all {
		known = append(known, s.name)
		if len(names) == 0 || slices.Contains(names, s.name) {
			chosen = append(chosen, s)
		}
		left = slices.DeleteFunc(left, func(name string) bool { return name == s.name })
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("there is no section %s: name some of %s", strings.Join(left, ", "), strings.Join(known, ", "))
	}
	return chosen, nil
}
