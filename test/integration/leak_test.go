package integration

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// After many mints through both doors, sealed as the client asks for them, no
// part of any token is anywhere but in the answers: not in etcd, whose keys are
// all dumped, not in a log or an audit log of any process, that of the hub's own
// API server at RequestResponse among them, not in an Event, not in a metric.
func TestAHundredMintsLeaveNoTokenBehind(t *testing.T) {
	require(t)
	var parts []string
	clients := doors(t, nil)
	for range 50 {
		for door, client := range clients {
			token := sealed(t, client, ask("payments/api").Spec)
			if strings.Count(token, ".") != 2 {
				t.Fatalf("%s: no token", door)
			}
			parts = append(parts, strings.Split(token, ".")[1:]...)
		}
	}
	if len(parts) < 200 {
		t.Fatalf("only %d parts were collected", len(parts))
	}
	places := map[string]string{"the hub's metrics": metrics(t)}
	for key, value := range etcd(t) {
		places["etcd key "+key] = value
	}
	logs, err := filepath.Glob(filepath.Join(hub.Dir, "logs", "*"))
	if err != nil || len(logs) < 10 {
		t.Fatalf("%d logs: %v", len(logs), err)
	}
	for _, log := range logs {
		content, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		places[log] = string(content)
	}
	if len(places) < 500 {
		t.Errorf("only %d places were searched", len(places))
	}
	for place, content := range places {
		for _, part := range parts {
			if strings.Contains(content, part) {
				t.Errorf("part of a token is in %s", place)
				break
			}
		}
	}
	audited := places[hub.Hub.Server.LogFile()]
	if got := strings.Count(audited, `"event":"mint","outcome":"allowed"`); got < 100 {
		t.Errorf("%d mints are in the audit trail, want at least 100", got)
	}
	t.Logf("searched %d places for %d parts", len(places), len(parts))
}

// metrics are what /metrics of the hub tells an administrator.
func metrics(t *testing.T) string {
	t.Helper()
	forbid, err := hub.AllowMetrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(forbid)
	var raw []byte
	eventually(t, "anyone may read the metrics", func(ctx context.Context) (err error) {
		raw, err = hub.Metrics(ctx)
		return err
	})
	for _, name := range []string{"cellcast_audit_records_total", `cellcast_audit_records_lost_total{event="mint"} 0`, `cellcast_cell_report_age_seconds{cell="prod-eu"}`, "apiserver_request_total", "controller_runtime_reconcile_total"} {
		if !strings.Contains(string(raw), name) {
			t.Errorf("/metrics lacks %s", name)
		}
	}
	return string(raw)
}

// etcd is everything that the control planes have stored, Events included.
func etcd(t *testing.T) map[string]string {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{hub.EtcdURL}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answer, err := client.Get(ctx, "\x00", clientv3.WithFromKey())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, kv := range answer.Kvs {
		all[string(kv.Key)] = string(kv.Value)
	}
	return all
}
