package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
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
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			var out bytes.Buffer
			audit.NewWriter(&out, nil).Write(tt.record)
			if diff := cmp.Diff(tt.line+"\n", out.String()); diff != "" {
				t.Errorf("the line differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWriterCutsTextsThatACallerMadeLong(t *testing.T) {
	var out bytes.Buffer
	long := strings.Repeat("é", 1<<20)
	audit.NewWriter(&out, nil).Write(audit.Record{User: long, Issuer: long, Subject: long, Workload: long,
		Cell: long, Message: long, RequestID: long, AuditID: long, JTI: long})

	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"user", "issuer", "subject", "workload", "cell", "message", "request_id", "audit_id", "jti"} {
		text, _ := line[field].(string)
		if len(text) > audit.MaxText || len(text) < audit.MaxText-8 || !strings.HasSuffix(text, "é…") || !utf8.ValidString(text) {
			t.Errorf("%s has %d bytes and ends in %q", field, len(text), text[max(0, len(text)-8):])
		}
	}
}

func TestLinesOfConcurrentCallersDontMix(t *testing.T) {
	var out bytes.Buffer
	writer := audit.NewWriter(&out, nil)
	var callers sync.WaitGroup
	for i := range 50 {
		callers.Go(func() { writer.Write(audit.Record{Event: audit.EventMint, RequestID: fmt.Sprint(i)}) })
	}
	callers.Wait()

	seen := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
		var record audit.Record
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		seen[record.RequestID] = true
	}
	if len(seen) != 50 {
		t.Errorf("%d of 50 records were written", len(seen))
	}
}

func TestARecordThatCantBeWrittenIsReportedAndTheNextOneIsWritten(t *testing.T) {
	out := &failing{err: errors.New("no space left")}
	var reported []string
	writer := audit.NewWriter(out, func(err error) { reported = append(reported, err.Error()) })

	writer.Write(audit.Record{Event: audit.EventMint, RequestID: "r-1"})
	out.err = nil
	writer.Write(audit.Record{Event: audit.EventMint, RequestID: "r-2"})

	if diff := cmp.Diff([]string{"writing the audit record of mint r-1: no space left"}, reported); diff != "" {
		t.Errorf("reports differ (-want +got):\n%s", diff)
	}
	if writer.Lost() != 1 {
		t.Errorf("%d records count as lost, want 1", writer.Lost())
	}
	if !strings.Contains(out.String(), `"r-2"`) {
		t.Errorf("the next record is missing: %q", out.String())
	}
}

func TestTeeHandsEachRecordToEverySinkInOrder(t *testing.T) {
	var first, second bytes.Buffer
	audit.Tee{audit.NewWriter(&first, nil), audit.NewWriter(&second, nil)}.Write(audit.Record{RequestID: "r-1"})
	if first.String() != second.String() || !strings.Contains(first.String(), `"r-1"`) {
		t.Errorf("the sinks got %q and %q", first.String(), second.String())
	}
}

type failing struct {
	bytes.Buffer
	err error
}

func (f *failing) Write(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.Buffer.Write(p)
}
