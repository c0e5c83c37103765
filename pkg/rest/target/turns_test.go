package target

import (
	"testing"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
)

func TestTheTargetsOfANamespaceHoldUpOneAnother(t *testing.T) {
	w := newWorld(t)
	for range turnsOfANamespace {
		if refused := w.turns.take("team-a"); refused != nil {
			t.Fatal(refused)
		}
	}
	_, err := w.ask(as(t, dana), cellcastv1alpha1.TargetTokenSpec{}, nil)
	if r, ok := refusal.FromStatus(err); !ok || r.Code != refusal.RateLimited || w.asked != 0 {
		t.Errorf("while as many are under way as may be: %v, and the target was asked for %d times", err, w.asked)
	}
	if refused := w.turns.take("team-b"); refused != nil {
		t.Errorf("another namespace: %v", refused)
	}
	w.turns.giveBack("team-a")
	for range 2 { // each gives its turn back
		if _, err := w.ask(as(t, dana), cellcastv1alpha1.TargetTokenSpec{}, nil); err != nil {
			t.Errorf("once one has ended: %v", err)
		}
	}
	w.turns.giveBack("team-b")
	if _, left := w.turns.under["team-b"]; left {
		t.Error("a namespace with nothing under way is still counted")
	}
}
