package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/refusal"
)

var (
	noon = time.Date(2027, 3, 4, 12, 0, 0, 5_000_000, time.UTC)
	age  = int64(12)
)

func TestWriterWritesOneLinePerRecord(t *testing.T) {
	tests := map[string]struct {
		record audit.Record
		line   string
	}{
		"a placement with every cell": {
			record: audit.Record{
				Time: noon, Event: audit.EventPlacement, Outcome: audit.OutcomeAllowed, RequestID: "r-1", AuditID: "a-1",
				CallerClass: "pipeline", User: "pipeline:https://ci.example#acme", Issuer: "https://ci.example", Subject: "repo:acme/api",
				Workload: "payments/api", Policy: "acme", Specificity: 2, Strategy: "LeastLoaded", Cell: "fra-1", DurationMS: 1.25,
				Candidates: []audit.Candidate{
					{Cell: "fra-1", Verdict: "Chosen", UtilisationPercent: "41.5", WorstResource: "memory", ReportAgeSeconds: &age},
					{Cell: "fra-2", Verdict: "Excluded", Stage: "state", Reason: "Draining", Message: "it is draining"},
				},
			},
			line: `{"time":"2027-03-04T12:00:00.005Z","event":"placement","outcome":"allowed","request_id":"r-1","audit_id":"a-1",` +
				`"caller_class":"pipeline","user":"pipeline:https://ci.example#acme","issuer":"https://ci.example","subject":"repo:acme/api",` +
				`"workload":"payments/api","policy":"acme","specificity":2,"strategy":"LeastLoaded","cell":"fra-1",` +
				`"candidates":[{"cell":"fra-1","verdict":"Chosen","utilisation_percent":"41.5","worst_resource":"memory","report_age_seconds":12},` +
				`{"cell":"fra-2","verdict":"Excluded","stage":"state","reason":"Draining","message":"it is draining"}],"duration_ms":1.25}`,
		},
		"a mint": {
			record: audit.Record{
				Time: noon, Event: audit.EventMint, Outcome: audit.OutcomeAllowed, RequestID: "r-1", Cell: "fra-1",
				Namespace: "payments", ServiceAccount: "deployer", TTLSeconds: 600, ExpiresAt: noon.Add(10 * time.Minute),
				JTI: "5b1c", TokenSHA256: "9f86d0", DurationMS: 5,
			},
			line: `{"time":"2027-03-04T12:00:00.005Z","event":"mint","outcome":"allowed","request_id":"r-1","cell":"fra-1",` +
				`"namespace":"payments","service_account":"deployer","ttl_seconds":600,"expires_at":"2027-03-04T12:10:00.005Z",` +
				`"jti":"5b1c","token_sha256":"9f86d0","duration_ms":5}`,
		},
		"the mint of a credential that is sealed and ends early": {
			record: audit.Record{
				Time: noon, Event: audit.EventMint, Outcome: audit.OutcomeAllowed, Sealed: true, Revocable: true, BoundTo: "cellcast-1946",
				RevokesAt: noon.In(time.FixedZone("CET", 3600)).Add(time.Minute),
			},
			line: `{"time":"2027-03-04T12:00:00.005Z","event":"mint","outcome":"allowed","sealed":true,"revocable":true,"bound_to":"cellcast-1946",` +
				`"revokes_at":"2027-03-04T12:01:00.005Z","duration_ms":0}`,
		},
		"a row whose condition the hub changed": {
			record: audit.Record{
				Time: noon, Event: audit.EventRowChanged, Outcome: audit.OutcomeAllowed, Cell: "fra-1", Kind: "Cluster", Name: "fra-1",
				Changes: []audit.Change{{Condition: "TrustEstablished", From: "True", FromReason: "Authenticated", To: "False", ToReason: "Unreachable"}},
			},
			line: `{"time":"2027-03-04T12:00:00.005Z","event":"row_changed","outcome":"allowed","cell":"fra-1","kind":"Cluster","name":"fra-1",` +
				`"changes":[{"condition":"TrustEstablished","from":"True","from_reason":"Authenticated","to":"False","to_reason":"Unreachable"}],"duration_ms":0}`,
		},
		"a refusal, with the same fields": {
			record: audit.Record{
				Time: noon, Event: audit.EventPlacement, Outcome: audit.OutcomeRefused, RequestID: "r-2", Workload: "payments/api",
				Refusal: refusal.NoPolicy, Message: "no policy matches",
			},
			line: `{"time":"2027-03-04T12:00:00.005Z","event":"placement","outcome":"refused","request_id":"r-2","workload":"payments/api",` +
				`"refusal":"NoPolicy","message":"no policy matches","duration_ms":0}`,
		},
		"a text that tries to begin a second line": {
			record: audit.Record{Time: noon, Event: audit.EventPlacement, Outcome: audit.OutcomeRefused, Workload: "a\"}\r\n{\u2028\x00<b>"},
			line: `{"time":"2027-03-04T12:00:00.005Z","event":"placement","outcome":"refused",` +
				`"workload":"a\"}\r\n{\u2028\u0000\u003cb\u003e","duration_ms":0}`,
		},
		"a time of another zone, in UTC": {
			record: audit.Record{Time: noon.In(time.FixedZone("CET", 3600)), Event: audit.EventReportRefused, Outcome: audit.OutcomeFailed},
			line:   `{"time":"2027-03-04T12:00:00.005Z","event":"report_refused","outcome":"failed","duration_ms":0}`,
		},
		"times that a cell made up, which have no text": {
			record: audit.Record{
				Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), Event: audit.EventMint, Outcome: audit.OutcomeAllowed,
				ExpiresAt: time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("west", -3600)), RevokesAt: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
			},
			line: `{"time":"0001-01-01T00:00:00Z","event":"mint","outcome":"allowed","duration_ms":0}`,
		},
		"the last time that has one": {
			record: audit.Record{Time: noon, Event: audit.EventMint, Outcome: audit.OutcomeAllowed, ExpiresAt: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)},
			line:   `{"time":"2027-03-04T12:00:00.005Z","event":"mint","outcome":"allowed","expires_at":"9999-12-31T23:59:59Z","duration_ms":0}`,
		},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			var out output
			if err := audit.NewWriter(&out, nil).Write(tt.record); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.line+"\n", out.String()); diff != "" {
				t.Errorf("the line differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWriterCutsTextsThatACallerMadeLong(t *testing.T) {
	for event, most := range map[audit.Event]int{
		audit.EventPlacement:            1024,
		audit.EventMint:                 1024,
		audit.EventAuthenticationFailed: 256,
		audit.EventAdmissionRefused:     256,
		audit.EventReportRefused:        256,
	} {
		t.Run(string(event), func(t *testing.T) {
			var out output
			long := strings.Repeat("é", 1<<20)
			err := audit.NewWriter(&out, nil).Write(audit.Record{Event: event, User: long, Issuer: long, Subject: long, Workload: long,
				Cell: long, Message: long, RequestID: long, AuditID: long, JTI: long, Kind: long, Name: long})
			if err != nil {
				t.Fatal(err)
			}

			var line map[string]any
			if err := json.Unmarshal(out.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			for _, field := range []string{"user", "issuer", "subject", "workload", "cell", "message", "request_id", "audit_id", "jti", "kind", "name"} {
				text, _ := line[field].(string)
				if len(text) > most || len(text) < most-8 || !strings.HasSuffix(text, "é…") || !utf8.ValidString(text) {
					t.Errorf("%s has %d bytes and ends in %q", field, len(text), text[max(0, len(text)-8):])
				}
			}
		})
	}
}

func TestARecordThatCantBeWrittenIsAnErrorAndTheNextOneIsWritten(t *testing.T) {
	for sentence, tt := range map[string]struct {
		out  failing
		says string
	}{
		"a full disk":   {failing{err: errors.New("no space left")}, "writing the audit record of mint r-1: no space left"},
		"a short write": {failing{short: true}, "writing the audit record of mint r-1: short write"},
	} {
		t.Run(sentence, func(t *testing.T) {
			out := tt.out
			var reported []string
			writer := audit.NewWriter(&out, func(err error) { reported = append(reported, err.Error()) })

			err := writer.Write(audit.Record{Event: audit.EventMint, RequestID: "r-1"})
			if err == nil || err.Error() != tt.says {
				t.Errorf("got %v, want %q", err, tt.says)
			}
			out.err, out.short = nil, false
			if err := writer.Write(audit.Record{Event: audit.EventMint, RequestID: "r-2"}); err != nil {
				t.Errorf("the next record: %v", err)
			}
			if diff := cmp.Diff([]string{tt.says}, reported); diff != "" {
				t.Errorf("reports differ (-want +got):\n%s", diff)
			}
			if lost := writer.Lost()[audit.EventMint]; lost != 1 {
				t.Errorf("%d records count as lost, want 1", lost)
			}
			if !strings.Contains(out.String(), `"r-2"`) {
				t.Errorf("the next record is missing: %q", out.String())
			}
		})
	}
}

func TestWhatStrangersCauseIsNotWaitedForAndItsLossIsOnlyCounted(t *testing.T) {
	full := errors.New("too many lines wait")
	var out output
	reported := 0
	writer := audit.NewWriter(&out, func(error) { reported++ })

	for _, event := range []audit.Event{audit.EventAuthenticationFailed, audit.EventAdmissionRefused, audit.EventReportRefused} {
		if err := writer.Write(audit.Record{Event: event, RequestID: "r-1"}); err != nil {
			t.Errorf("%s: %v", event, err)
		}
	}
	if len(out.offered) != 3 {
		t.Fatalf("%d lines were offered, want 3", len(out.offered))
	}
	out.offered[0](errors.New("no space left"))
	out.full = full
	if err := writer.Write(audit.Record{Event: audit.EventAdmissionRefused, RequestID: "r-2"}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if err := writer.Write(audit.Record{Event: audit.EventPlacement, RequestID: "r-3"}); err != nil {
		t.Errorf("a placement has the room of its own: %v", err)
	}

	want := map[audit.Event]uint64{
		audit.EventPlacement: 0, audit.EventMint: 0, audit.EventRevocation: 0, audit.EventRowChanged: 0,
		audit.EventCredentialRead: 0, audit.EventProbeRequested: 0, audit.EventProbe: 0, audit.EventArtifact: 0, audit.EventArtifactRefused: 0,
		audit.EventReportRefused: 0, audit.EventAuthenticationFailed: 1, audit.EventAdmissionRefused: 1,
	}
	if diff := cmp.Diff(want, writer.Lost()); diff != "" {
		t.Errorf("lost records (-want +got):\n%s", diff)
	}
	if reported != 0 {
		t.Errorf("%d losses were reported", reported)
	}
}

func TestTeeReturnsWhatTheTrailSaysAndTellsTheOthersInAnyCase(t *testing.T) {
	full, broken := errors.New("no space left"), errors.New("a view is broken")
	for sentence, tt := range map[string]struct{ trail, view, want error }{
		"all is well":                          {nil, nil, nil},
		"the trail is full":                    {full, nil, full},
		"a view that fails is nobody's matter": {nil, broken, nil},
		"both":                                 {full, broken, full},
	} {
		t.Run(sentence, func(t *testing.T) {
			var order []string
			sink := func(name string, err error) audit.Sink {
				return sinkFunc(func(r audit.Record) error { order = append(order, name+" "+r.RequestID); return err })
			}
			got := audit.Tee{sink("trail", tt.trail), sink("view", tt.view)}.Write(audit.Record{RequestID: "r-1"})
			if !errors.Is(got, tt.want) || (tt.want == nil && got != nil) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if diff := cmp.Diff([]string{"trail r-1", "view r-1"}, order); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

type sinkFunc func(audit.Record) error

func (f sinkFunc) Write(r audit.Record) error { return f(r) }

// output has room for what it's offered until it's full.
type output struct {
	bytes.Buffer
	full    error
	offered []func(error)
}

func (o *output) Offer(line []byte, lost func(error)) error {
	if o.full != nil {
		return o.full
	}
	o.offered = append(o.offered, lost)
	o.Write(line)
	return nil
}

type failing struct {
	output
	err   error
	short bool
}

func (f *failing) Write(p []byte) (int, error) {
	switch {
	case f.err != nil:
		return 0, f.err
	case f.short:
		return f.Buffer.Write(p[:len(p)-1])
	default:
		return f.Buffer.Write(p)
	}
}
