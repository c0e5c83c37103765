package audit_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/pkg/audit"
)

// class is why a field of a record can't hold a token.
type class string

const (
	measure  class = "a number, a flag or a time"
	closed   class = "one of a closed set of the hub's own words"
	name     class = "the name of something, as Kubernetes or the policy names it"
	identity class = "who asks, as the authenticator that ran says; never what was shown to it"
	id       class = "an id that opens nothing"
	digest   class = "a digest of a whole token; it can't be turned back"
	refused  class = "the text of a refusal, which any stranger may read"
	rows     class = "a list of rows whose fields are classified too"
)

// Each field of a record, and why it can't hold a token. Before you add a field
// here, be sure that you can name its class.
var classes = map[string]class{
	"Record.Time":           measure,
	"Record.Event":          closed,
	"Record.Outcome":        closed,
	"Record.RequestID":      id,
	"Record.AuditID":        id,
	"Record.CallerClass":    closed,
	"Record.User":           identity,
	"Record.Issuer":         identity,
	"Record.Subject":        identity,
	"Record.Workload":       name,
	"Record.Dark":           measure,
	"Record.DryRun":         measure,
	"Record.Policy":         name,
	"Record.Specificity":    measure,
	"Record.Strategy":       closed,
	"Record.Cell":           name,
	"Record.Target":         id,
	"Record.Run":            id,
	"Record.Confidence":     closed,
	"Record.Candidates":     rows,
	"Record.Refusal":        closed,
	"Record.Message":        refused,
	"Record.Reason":         closed,
	"Record.Namespace":      name,
	"Record.ServiceAccount": name,
	"Record.Sealed":         measure,
	"Record.Revocable":      measure,
	"Record.BoundTo":        id,
	"Record.Revoked":        measure,
	"Record.TTLSeconds":     measure,
	"Record.ExpiresAt":      measure,
	"Record.RevokesAt":      measure,
	"Record.JTI":            id,
	"Record.TokenSHA256":    digest,
	"Record.Kind":           name,
	"Record.Name":           name,
	"Record.Changes":        rows,
	"Record.DurationMS":     measure,

	"Candidate.Cell":               name,
	"Candidate.Verdict":            closed,
	"Candidate.Stage":              closed,
	"Candidate.Reason":             closed,
	"Candidate.Message":            refused,
	"Candidate.UtilisationPercent": measure,
	"Candidate.WorstResource":      name,
	"Candidate.ReportAgeSeconds":   measure,

	"Change.Condition":  closed,
	"Change.From":       closed,
	"Change.FromReason": closed,
	"Change.To":         closed,
	"Change.ToReason":   closed,
}

func TestEveryFieldOfARecordIsClassified(t *testing.T) {
	found := map[string]class{}
	var walk func(reflect.Type)
	walk = func(of reflect.Type) {
		for _, field := range reflect.VisibleFields(of) {
			path := of.Name() + "." + field.Name
			found[path] = classes[path]
			if classes[path] == "" {
				t.Errorf("%s has no class: say why it can't hold a token", path)
			}
			switch kind := field.Type.Kind(); {
			case field.Type == reflect.TypeFor[time.Time](), kind == reflect.String, kind == reflect.Bool,
				kind == reflect.Int, kind == reflect.Int64, kind == reflect.Float64:
			case field.Type == reflect.TypeFor[*int64]():
			case kind == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct:
				walk(field.Type.Elem())
			default:
				t.Errorf("%s is a %s, which could hold anything", path, field.Type)
			}
		}
	}
	walk(reflect.TypeFor[audit.Record]())

	if diff := cmp.Diff(classes, found); diff != "" {
		t.Errorf("the table and the record differ (-table +record):\n%s", diff)
	}
}
