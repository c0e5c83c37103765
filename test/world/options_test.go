package world_test

import (
	"errors"
	"testing"

	"cellcast.io/cellcast/test/world"
	"cellcast.io/cellcast/test/world/worldtest"
)

func TestStartRefuses(t *testing.T) {
	worldtest.Require(t)
	tests := map[string]struct {
		options world.Options
		want    string
	}{
		"a world without a folder": {
			world.Options{},
			"a world needs a folder: set Options.Dir",
		},
		"a cell with the hub's name": {
			world.Options{Dir: "unused", Cells: []world.CellOptions{{Name: "hub"}}},
			`cell "hub": the name is taken`,
		},
		"two cells of one name": {
			world.Options{Dir: "unused", Cells: []world.CellOptions{{Name: "a"}, {Name: "a"}}},
			`cell "a": the name is taken`,
		},
		"a cell whose name leaves the folder": {
			world.Options{Dir: "unused", Cells: []world.CellOptions{{Name: "../a"}}},
			`cell "../a": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := world.Start(t.Context(), test.options)
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestWithoutAssets(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())

	t.Run("start says that nothing is built", func(t *testing.T) {
		_, err := world.Start(t.Context(), world.Options{Dir: t.TempDir()})
		if !errors.Is(err, world.ErrNoAssets) {
			t.Errorf("got %v, want ErrNoAssets", err)
		}
	})
	t.Run("a test is skipped", func(t *testing.T) {
		t.Setenv("CELLCAST_REQUIRE_WORLD", "")
		if got := outcome(t, worldtest.Require); got != "skipped" {
			t.Errorf("the test is %s", got)
		}
	})
	t.Run("a test fails where a world is required", func(t *testing.T) {
		t.Setenv("CELLCAST_REQUIRE_WORLD", "1")
		if got := outcome(t, worldtest.Require); got != "failed" {
			t.Errorf("the test is %s", got)
		}
	})
}

// outcome is what becomes of a test that calls f.
func outcome(t *testing.T, f func(testing.TB)) string {
	inner := &inner{TB: t, outcome: "going on"}
	f(inner)
	return inner.outcome
}

type inner struct {
	testing.TB
	outcome string
}

func (i *inner) Skip(...any)  { i.outcome = "skipped" }
func (i *inner) Fatal(...any) { i.outcome = "failed" }
