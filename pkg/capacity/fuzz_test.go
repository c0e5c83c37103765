package capacity_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
)

// FuzzReport sends the index what a broken or hostile agent could. Nothing
// panics; a report that is refused changes nothing; one that is taken gives a
// utilisation that is a number.
func FuzzReport(f *testing.F) {
	for _, seed := range []string{
		`{"sequence":2,"observedAt":"2026-11-29T12:00:00.000000Z","nodes":3,"allocatable":{"cpu":"10","memory":"100","pods":"100"},"requested":{"cpu":"4"}}`,
		`{"sequence":2,"observedAt":"2026-11-29T12:00:00.000000Z","nodes":0}`,
		`{"sequence":1,"observedAt":"2026-11-29T12:00:00.000000Z","nodes":1,"allocatable":{"cpu":"10","memory":"100","pods":"100"}}`,
		`{"sequence":2,"observedAt":"2026-11-29T13:00:00.000000Z","nodes":1,"allocatable":{"cpu":"10","memory":"100","pods":"100"}}`,
		`{"sequence":9223372036854775807,"observedAt":"2026-11-29T12:00:00.000000Z","nodes":2147483647,"allocatable":{"cpu":"1m","memory":"1","pods":"1"},"requested":{"memory":"1E"}}`,
		`{"sequence":2,"observedAt":"2026-11-29T12:00:00.000000Z","nodes":1,"allocatable":{"cpu":"1e30","memory":"16Ei","pods":"-1"}}`,
		`{"sequence":2,"observedAt":"2026-11-29T12:00:00.000000Z","nodes":1,"allocatable":{"cpu":"10","memory":"100","pods":"100","nvidia.com/gpu":"0"},"requested":{"nvidia.com/gpu":"3"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s v1alpha1.CellCapacitySpec
		if len(data) > 4096 || json.Unmarshal(data, &s) != nil {
			t.Skip()
		}
		ix := newIndex()
		observe(t, ix, 1, noon, "cpu=4")
		before, _ := ix.Describe("a", noon)

		r, refused := capacity.ParseReport(&s)
		if refused == nil {
			_, refused = ix.Observe("a", r, noon)
		}
		after, _ := ix.Describe("a", noon)
		if refused != nil {
			if refused.Code != "InvalidRequest" || refused.Field == "" {
				t.Errorf("refused without a field: %v", refused)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("a refused report changed the index: %s", diff)
			}
			return
		}
		if after.Health != v1alpha1.CapacityFresh {
			t.Errorf("a report was taken and the cell is %s", after.Health)
		}
		if u := after.Utilisation.Ratio; math.IsNaN(u) || math.IsInf(u, 0) || u < 0 {
			t.Errorf("the utilisation is %v", u)
		}
		if known := after.Utilisation.Resource != ""; known != (s.Nodes > 0) {
			t.Errorf("%d nodes, and the utilisation is %+v", s.Nodes, after.Utilisation)
		}
	})
}
