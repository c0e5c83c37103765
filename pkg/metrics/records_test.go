package metrics

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/refusal"
)

// values compares the samples of the named metrics, without help and type.
func values(t *testing.T, registry *prometheus.Registry, want string, names ...string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]string{}
	for _, family := range families {
		described[family.GetName()] = "# HELP " + family.GetName() + " " + family.GetHelp() + "\n# TYPE " + family.GetName() + " " +
			strings.ToLower(family.GetType().String()) + "\n"
	}
	var head string
	text := ""
	for line := range strings.Lines(want) {
		name := line[:strings.IndexAny(line, "{ ")]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(name, suffix); described[base] != "" {
				name = base
			}
		}
		if described[name] != head {
			head = described[name]
			text += head
		}
		text += line
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(text), names...); err != nil {
		t.Error(err)
	}
}

func TestEachRecordIsCountedByWhatItSays(t *testing.T) {
	registry := prometheus.NewRegistry()
	records := NewRecords(registry)
	for _, record := range []audit.Record{
		{Event: audit.EventPlacement, Outcome: audit.OutcomeRefused, Refusal: refusal.NoPolicy, User: "dana"},
		{Event: audit.EventPlacement, Outcome: audit.OutcomeRefused, Refusal: refusal.NoPolicy, User: "kim"},
		{Event: audit.EventPlacement, Outcome: audit.OutcomeAllowed, Policy: "acme", Cell: "prod-eu", Confidence: "degraded"},
		{Event: audit.EventPlacement, Outcome: audit.OutcomeAllowed, Policy: "acme", Cell: "prod-eu", DryRun: true, Confidence: "high"},
		{Event: audit.EventMint, Outcome: audit.OutcomeAllowed, Cell: "prod-eu"},
		{Event: audit.EventMint, Outcome: audit.OutcomeRefused, Refusal: refusal.MintUnavailable, Cell: "prod-us"},
		{Event: audit.EventRevocation, Outcome: audit.OutcomeAllowed, Cell: "prod-eu"},
		{Event: audit.EventAuthenticationFailed, Outcome: audit.OutcomeRefused, Reason: "Expired", Cell: "whatever"},
		{Event: audit.EventReportRefused, Outcome: audit.OutcomeRefused, Refusal: refusal.InvalidRequest},
		{Event: audit.EventAdmissionRefused, Outcome: audit.OutcomeRefused},
		{Event: audit.EventRowChanged, Outcome: audit.OutcomeAllowed},
		{Event: audit.EventArtifact, Outcome: audit.OutcomeAllowed, Kind: "canary", Name: "canary-1"},
		{Event: audit.EventArtifact, Outcome: audit.OutcomeFailed, Kind: "canary", Name: "canary-1"},
		{Event: audit.EventArtifactRefused, Outcome: audit.OutcomeRefused, Reason: "UnknownPod", Name: "whatever"},
		{Event: audit.EventArtifactRefused, Outcome: audit.OutcomeRefused, Reason: "UnknownPod", Name: "whoever"},
		{Event: audit.EventCredentialRead, Outcome: audit.OutcomeAllowed},
		{Event: audit.EventProbeRequested, Outcome: audit.OutcomeAllowed},
		{Event: audit.EventProbe, Outcome: audit.OutcomeRefused},
	} {
		if err := records.Write(record); err != nil {
			t.Fatal(err)
		}
	}
	values(t, registry, `cellcast_audit_records_total{event="admission_refused",outcome="failed",refusal=""} 0
cellcast_audit_records_total{event="admission_refused",outcome="refused",refusal=""} 1
cellcast_audit_records_total{event="artifact",outcome="allowed",refusal=""} 1
cellcast_audit_records_total{event="artifact",outcome="failed",refusal=""} 1
cellcast_audit_records_total{event="artifact_refused",outcome="failed",refusal=""} 0
cellcast_audit_records_total{event="artifact_refused",outcome="refused",refusal=""} 2
cellcast_audit_records_total{event="authentication_failed",outcome="failed",refusal=""} 0
cellcast_audit_records_total{event="authentication_failed",outcome="refused",refusal=""} 1
cellcast_audit_records_total{event="credential_read",outcome="allowed",refusal=""} 1
cellcast_audit_records_total{event="credential_read",outcome="failed",refusal=""} 0
cellcast_audit_records_total{event="mint",outcome="allowed",refusal=""} 1
cellcast_audit_records_total{event="mint",outcome="failed",refusal=""} 0
cellcast_audit_records_total{event="mint",outcome="refused",refusal="MintUnavailable"} 1
cellcast_audit_records_total{event="placement",outcome="allowed",refusal=""} 2
cellcast_audit_records_total{event="placement",outcome="failed",refusal=""} 0
cellcast_audit_records_total{event="placement",outcome="refused",refusal="NoPolicy"} 2
cellcast_audit_records_total{event="probe",outcome="failed",refusal=""} 0
cellcast_audit_records_total{event="probe",outcome="refused",refusal=""} 1
cellcast_audit_records_total{event="probe_requested",outcome="allowed",refusal=""} 1
cellcast_audit_records_total{event="probe_requested",outcome="failed",refusal=""} 0
cellcast_audit_records_total{event="report_refused",outcome="failed",refusal=""} 0
cellcast_audit_records_total{event="report_refused",outcome="refused",refusal="InvalidRequest"} 1
cellcast_audit_records_total{event="revocation",outcome="allowed",refusal=""} 1
cellcast_audit_records_total{event="revocation",outcome="failed",refusal=""} 0
cellcast_audit_records_total{event="row_changed",outcome="allowed",refusal=""} 1
cellcast_audit_records_total{event="row_changed",outcome="failed",refusal=""} 0
cellcast_authentication_failures_total{reason="Expired"} 1
cellcast_ingest_posts_total{outcome="allowed",reason=""} 1
cellcast_ingest_posts_total{outcome="failed",reason=""} 1
cellcast_ingest_posts_total{outcome="refused",reason="UnknownPod"} 2
cellcast_mints_total{cell="prod-eu",outcome="allowed",refusal=""} 1
cellcast_mints_total{cell="prod-us",outcome="refused",refusal="MintUnavailable"} 1
cellcast_placement_confidence_total{confidence="degraded"} 1
cellcast_placement_confidence_total{confidence="high"} 1
cellcast_placements_total{dry_run="false",outcome="allowed",policy="acme",refusal=""} 1
cellcast_placements_total{dry_run="false",outcome="refused",policy="",refusal="NoPolicy"} 2
cellcast_placements_total{dry_run="true",outcome="allowed",policy="acme",refusal=""} 1
cellcast_revocations_total{outcome="allowed",refusal=""} 1
`, "cellcast_audit_records_total", "cellcast_authentication_failures_total", "cellcast_ingest_posts_total", "cellcast_mints_total",
		"cellcast_placement_confidence_total", "cellcast_placements_total", "cellcast_revocations_total")
}

func TestDurationsAreThoseOfTheRecords(t *testing.T) {
	registry := prometheus.NewRegistry()
	records := NewRecords(registry)
	for _, record := range []audit.Record{
		{Event: audit.EventPlacement, DurationMS: 0.75},
		{Event: audit.EventMint, Cell: "prod-eu", DurationMS: 2000},
	} {
		if err := records.Write(record); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]float64{"cellcast_placement_duration_seconds": 0.00075, "cellcast_mint_duration_seconds": 2} {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := -1.0
		for _, family := range families {
			if family.GetName() == name {
				got = family.GetMetric()[0].GetHistogram().GetSampleSum()
			}
		}
		if got != want {
			t.Errorf("%s sums up to %v, want %v", name, got, want)
		}
	}
}

func TestCellsAreReadWhenTheMetricsAre(t *testing.T) {
	registry := prometheus.NewRegistry()
	cells := []Cell{
		{Name: "prod-eu", State: "LIVE", Health: "Fresh", Reported: true, ReportAge: 1500 * time.Millisecond, Conditions: map[string]bool{"TrustEstablished": true}},
		{Name: "prod-us", State: "DRAINING", Health: "Stale", Reported: true, ReportAge: 2 * time.Minute, Conditions: map[string]bool{"TrustEstablished": false}},
		{Name: "new", State: "LIVE", Health: "Unknown"},
	}
	registry.MustRegister(Cells(func() []Cell { return cells }))
	want := `cellcast_cell_condition{cell="prod-eu",condition="TrustEstablished"} 1
cellcast_cell_condition{cell="prod-us",condition="TrustEstablished"} 0
cellcast_cell_report_age_seconds{cell="prod-eu"} 1.5
cellcast_cell_report_age_seconds{cell="prod-us"} 120
cellcast_cells{health="Fresh",state="LIVE"} 1
cellcast_cells{health="Stale",state="DRAINING"} 1
cellcast_cells{health="Unknown",state="LIVE"} 1
`
	values(t, registry, want)
	cells = append(cells, Cell{Name: "newer", State: "LIVE", Health: "Unknown"})
	values(t, registry, strings.Replace(want, `Unknown",state="LIVE"} 1`, `Unknown",state="LIVE"} 2`, 1))
}

func TestAReplicaTellsOfItself(t *testing.T) {
	registry := prometheus.NewRegistry()
	now, warm := time.Unix(1000, 0), false
	registry.MustRegister(
		NewWarm(func() bool { return warm }),
		NewLost(func() map[audit.Event]uint64 {
			return map[audit.Event]uint64{audit.EventMint: 0, audit.EventAdmissionRefused: 3}
		}),
		NewEvents(func() map[string]uint64 { return map[string]uint64{"written": 4, "dropped": 5} }),
	)
	reloads := NewReloads(registry, func() time.Time { return now })

	now = time.Unix(2000, 0)
	reloads.Observe(errors.New("bad file"))
	values(t, registry, `cellcast_audit_records_lost_total{event="admission_refused"} 3
cellcast_audit_records_lost_total{event="mint"} 0
cellcast_cluster_events_total{result="dropped"} 5
cellcast_cluster_events_total{result="written"} 4
cellcast_issuer_config_last_reload_success_timestamp_seconds 1000
cellcast_issuer_config_last_reload_successful 0
cellcast_replica_warm 0
`)
	warm = true
	reloads.Observe(nil)
	values(t, registry, `cellcast_issuer_config_last_reload_success_timestamp_seconds 2000
cellcast_issuer_config_last_reload_successful 1
cellcast_replica_warm 1
`, "cellcast_issuer_config_last_reload_success_timestamp_seconds", "cellcast_issuer_config_last_reload_successful", "cellcast_replica_warm")
}
