// Package worldtest fits package world to tests.
package worldtest

import (
	"errors"
	"os"
	"testing"

	"cellcast.io/cellcast/test/world"
)

// Require skips the test where no control plane is built. With
// CELLCAST_REQUIRE_WORLD=1, as `make test` sets it, the test fails instead, so
// that a run that was meant to be whole can't pass by leaving things out.
func Require(t testing.TB) {
	t.Helper()
	err := world.HaveAssets()
	switch {
	case err == nil:
	case errors.Is(err, world.ErrNoAssets) && os.Getenv("CELLCAST_REQUIRE_WORLD") != "1":
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}

// Start starts a world for the test and ends it with the test. Its folder is a
// temporary one unless the options name another; it is kept when the test
// fails, and the test says where.
func Start(t testing.TB, o world.Options) *world.World {
	t.Helper()
	Require(t)
	if o.Dir == "" {
		o.Dir = folder(t)
	}
	w, err := world.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func folder(t testing.TB) string {
	dir, err := os.MkdirTemp("", "cellcast-world-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the world's state and logs are kept in %s", dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
	return dir
}

// RequireNode skips the test, saying why, where no cell can have a node. With
// CELLCAST_REQUIRE_NODE=1, as CI sets it, the test fails instead.
func RequireNode(t testing.TB) {
	t.Helper()
	Require(t)
	err := world.HaveNode()
	switch {
	case err == nil:
	case os.Getenv("CELLCAST_REQUIRE_NODE") != "1":
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}
