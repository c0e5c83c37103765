package cell_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/cell/celltest"
	"cellcast.io/cellcast/pkg/cell/failure"
)

// What a cell can make the hub allocate is bounded by what it sends, and not by
// the kind or the format that it chooses.
func TestAnAnswerCantBecomeMuchLargerThanItIs(t *testing.T) {
	long := strings.Repeat("a", 8<<10)
	aliases := fmt.Sprintf("kind: Status\na: &a %q\nb: [%s]\n", long, strings.TrimSuffix(strings.Repeat("*a,", 2600), ","))
	for sentence, tt := range map[string]struct {
		code        int
		contentType string
		body        string
	}{
		"YAML with aliases":               {http.StatusCreated, "application/yaml", aliases},
		"YAML with aliases in a refusal":  {http.StatusForbidden, "application/yaml", aliases},
		"another kind":                    {http.StatusCreated, "application/json", `{"kind":"PodList","apiVersion":"v1","items":[` + strings.Repeat("{},", 300_000) + `{}]}`},
		"another kind in a refusal":       {http.StatusForbidden, "application/json", `{"kind":"PodList","apiVersion":"v1","items":[` + strings.Repeat("{},", 300_000) + `{}]}`},
		"a long list":                     {http.StatusCreated, "application/json", `{"metadata":{"managedFields":[` + strings.Repeat("{},", 300_000) + `{}]}}`},
		"a list that is in bounds":        {http.StatusCreated, "application/json", `{"metadata":{"name":"p","uid":"u","managedFields":[` + strings.Repeat("{},", 20_000) + `{}]}}`},
		"protobuf, which nobody asks for": {http.StatusCreated, "application/vnd.kubernetes.protobuf", "k8s\x00" + long},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, cell.Options{})
			w.cell.Answer(&celltest.Canned{Code: tt.code, Header: http.Header{"Content-Type": {tt.contentType}}, Body: tt.body})
			client := w.client(t)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, whoAmI := client.WhoAmI(t.Context())
			_, _ = client.GetPod(t.Context(), "team", "p")
			_, _ = client.ReviewRules(t.Context(), "team")
			_, _ = client.JWKS(t.Context())
			runtime.ReadMemStats(&after)
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 48 {
				t.Errorf("four answers of at most 1 MiB took %d MiB", got)
			}
			if whoAmI == nil {
				t.Error("the answer was taken")
			}
		})
	}
}

func TestATokenThatARefusalRepeatsIsInNoError(t *testing.T) {
	w := newWorld(t, cell.Options{})
	w.cell.Answer(&celltest.Canned{Code: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
		Body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no: ` + celltest.Echo + `"}`})
	_, err := w.client(t).WhoAmI(t.Context())
	if failure.Of(err) != failure.Forbidden || !strings.HasSuffix(err.Error(), "no: Bearer [redacted]") {
		t.Errorf("got %v", err)
	}
}
