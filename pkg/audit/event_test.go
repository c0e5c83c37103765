package audit_test

import (
	"testing"

	"cellcast.io/cellcast/pkg/audit"
)

func TestWhatMayBeLostInAFloodIsWhatStrangersCause(t *testing.T) {
	byStranger := map[audit.Event]bool{
		audit.EventPlacement:            false,
		audit.EventMint:                 false,
		audit.EventRevocation:           false,
		audit.EventReportRefused:        true,
		audit.EventAuthenticationFailed: true,
		audit.EventAdmissionRefused:     true,
		audit.EventCredentialRead:       false,
		audit.EventProbeRequested:       false,
		audit.EventProbe:                false,
		audit.EventArtifact:             false,
		audit.EventArtifactRefused:      true,
		audit.EventRowChanged:           false,
		"another":                       false,
	}
	for event, want := range byStranger {
		if got := event.ByStranger(); got != want {
			t.Errorf("%s: got %t, want %t", event, got, want)
		}
	}
	for _, event := range audit.Events() {
		if _, known := byStranger[event]; !known {
			t.Errorf("%s: say whether a stranger can cause it", event)
		}
	}
}
