package hub

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"sigs.k8s.io/yaml"
)

// Whoever floods waits behind itself. The owner of a namespace has as many
// ServiceAccounts there as they like, and all of them may ask about its targets.
func TestAFlowIsWhatNobodyMultiplies(t *testing.T) {
	text, err := os.ReadFile("../../artifacts/rbac/hub.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]flowcontrolv1.FlowDistinguisherMethodType{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var schema flowcontrolv1.FlowSchema
		if err := yaml.Unmarshal([]byte(document), &schema); err != nil {
			t.Fatal(err)
		}
		if method := schema.Spec.DistinguisherMethod; schema.Kind == "FlowSchema" && method != nil {
			got[schema.Name] = method.Type
		}
	}
	want := map[string]flowcontrolv1.FlowDistinguisherMethodType{
		"cellcast-reporters":  flowcontrolv1.FlowDistinguisherMethodByUserType,
		"cellcast-placements": flowcontrolv1.FlowDistinguisherMethodByUserType,
		"cellcast-targets":    flowcontrolv1.FlowDistinguisherMethodByNamespaceType,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flows (-want +got):\n%s", diff)
	}
}
