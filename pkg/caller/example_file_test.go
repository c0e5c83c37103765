package caller

import "testing"

// The example that operators start from is taken over as it is.
func TestTheExampleConfigurationIsTaken(t *testing.T) {
	p, err := NewPipelines(t.Context(), PipelineOptions{File: "../../artifacts/examples/authentication.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Issuers(); len(got) != 1 || got[0] != "https://token.actions.githubusercontent.com" {
		t.Errorf("issuers %q", got)
	}
}
