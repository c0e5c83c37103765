package caller

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/keyset"
	"cellcast.io/cellcast/test/issuer"
)

// fleet is a set of registered cells, each with an issuer of its own that
// serves its keys, as a cell's API server does.
type fleet struct {
	mu      sync.Mutex
	rows    map[string]*registry.Cluster
	issuers map[string]*issuer.Issuer
	made    []string // cells in the order that key sets were made for them
}

func (f *fleet) Cluster(name string) (*registry.Cluster, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	row, ok := f.rows[name]
	return row, ok
}

func (f *fleet) Keys(cell *registry.Cluster) (KeySet, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made = append(f.made, cell.Name)
	server, ok := f.issuers[cell.Name]
	if !ok {
		return nil, errors.New("no way to the cell")
	}
	client, err := keyset.Client(server.CA())
	if err != nil {
		return nil, err
	}
	return keyset.New(keyset.Discovery(client, server.URL(), ""), keyset.Options{}), nil
}

func (f *fleet) change(name string, change func(*registry.Cluster)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	row := f.rows[name].DeepCopy()
	change(row)
	f.rows[name] = row
}

const (
	stockIssuer = "https://kubernetes.default.svc.cluster.local"
	agent       = "system:serviceaccount:cellcast-system:cellcast-agent"
)

func cell(name string) *registry.Cluster {
	return &registry.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: registry.ClusterSpec{
			Endpoint: "https://" + name + ".example.com",
			Reporter: &registry.ClusterReporter{Issuer: stockIssuer, Subject: agent},
		},
	}
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	silent := cell("silent")
	silent.Spec.Reporter = nil
	return &fleet{
		rows: map[string]*registry.Cluster{"eu-1": cell("eu-1"), "eu-2": cell("eu-2"), "lost": cell("lost"), "silent": silent},
		issuers: map[string]*issuer.Issuer{
			"eu-1": startIssuer(t, issuer.Options{}), "eu-2": startIssuer(t, issuer.Options{}),
		},
	}
}

// reportToken is a token of the agent of a cell, with the claims changed.
func (f *fleet) reportToken(t *testing.T, cell string, how issuer.Signing, changes ...any) string {
	t.Helper()
	claims := map[string]any{"iss": stockIssuer, "sub": agent, "aud": []string{"cellcast.io/reports"}}
	for i := 0; i < len(changes); i += 2 {
		claims[changes[i].(string)] = changes[i+1]
	}
	token, err := f.issuers[cell].Sign(claims, how)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func capacityOf(cell string) *genericapirequest.RequestInfo {
	return &genericapirequest.RequestInfo{IsResourceRequest: true, Verb: "create", APIGroup: "cellcast.io", APIVersion: "v1alpha1",
		Resource: "cells", Subresource: "capacity", Name: cell}
}

func newReporters(f *fleet) *Reporters {
	return NewReporters(ReporterOptions{Clusters: f, Keys: f, Audience: "cellcast.io/reports"})
}

func TestCellsWithOneIssuerStringReportForThemselvesAlone(t *testing.T) {
	f := newFleet(t)
	r := newReporters(f)
	for _, from := range []string{"eu-1", "eu-2"} {
		token := f.reportToken(t, from, issuer.Signing{})
		for _, to := range []string{"eu-1", "eu-2"} {
			ctx := genericapirequest.WithRequestInfo(t.Context(), capacityOf(to))
			response, ok, err := r.AuthenticateToken(ctx, token)
			if from != to {
				// Both issuers call their first key the same.
				wantFailure(t, err, ReasonSignature, `Signature: reporter of cell "`+to+`": the token's signature is missing or wrong`, token)
				continue
			}
			if !ok {
				t.Fatalf("the reporter of %s: %v", to, err)
			}
			if diff := cmp.Diff(&Reporter{Cell: to}, response.User); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
}

func TestReporterIsRefused(t *testing.T) {
	f := newFleet(t)
	r := newReporters(f)
	past := in(-time.Minute)
	list := capacityOf("eu-1")
	list.Verb = "get"
	tests := map[string]struct {
		request *genericapirequest.RequestInfo
		token   string
		reason  Reason
		text    string
	}{
		"of a cell that doesn't exist": {capacityOf("us-9"), f.reportToken(t, "eu-1", issuer.Signing{}), ReasonUnknownCell,
			`reporter of cell "us-9": there is no such Cluster`},
		"of a cell that names no reporter": {capacityOf("silent"), f.reportToken(t, "eu-1", issuer.Signing{}), ReasonNoReporter,
			`reporter of cell "silent": the Cluster has no spec.reporter, so nobody may report for it`},
		"of a cell whose keys can't be had": {capacityOf("lost"), f.reportToken(t, "eu-1", issuer.Signing{}), ReasonKeysUnavailable,
			`reporter of cell "lost": no way to the cell`},
		"with another issuer": {capacityOf("eu-1"), f.reportToken(t, "eu-1", issuer.Signing{}, "iss", stockIssuer+"/"), ReasonIssuer,
			`reporter of cell "eu-1": the issuer is "https://kubernetes.default.svc.cluster.local/", not "https://kubernetes.default.svc.cluster.local"`},
		"with another subject": {capacityOf("eu-1"), f.reportToken(t, "eu-1", issuer.Signing{}, "sub", "system:serviceaccount:default:default"), ReasonSubject,
			`reporter of cell "eu-1": the subject is "system:serviceaccount:default:default", not "system:serviceaccount:cellcast-system:cellcast-agent"`},
		"with another audience": {capacityOf("eu-1"), f.reportToken(t, "eu-1", issuer.Signing{}, "aud", "api"), ReasonAudience,
			`reporter of cell "eu-1": the audience is ["api"], not one of ["cellcast.io/reports"]`},
		"with an expired token": {capacityOf("eu-1"), f.reportToken(t, "eu-1", issuer.Signing{}, "exp", past), ReasonExpired,
			`reporter of cell "eu-1": the token expired at ` + time.Unix(past, 0).UTC().Format(time.RFC3339)},
		"with an unsigned token": {capacityOf("eu-1"), f.reportToken(t, "eu-1", issuer.Signing{Alg: issuer.None}), ReasonAlgorithm,
			`reporter of cell "eu-1": the token is not signed by an asymmetric algorithm that is accepted`},
		"with a key that the cell doesn't have": {capacityOf("eu-1"), f.reportToken(t, "eu-1", issuer.Signing{Key: issuer.Unpublished}), ReasonUnknownKey,
			`reporter of cell "eu-1": the token is signed by a key that its issuer doesn't publish`},
		"with words": {capacityOf("eu-1"), "let me in", ReasonMalformed,
			`reporter of cell "eu-1": the token is not a compact JWT of at most 16 KiB`},
		"where it reads":                {list, f.reportToken(t, "eu-1", issuer.Signing{}), ReasonVerb, "a reporter can only create cells/capacity"},
		"where it asks for a placement": {placements(), f.reportToken(t, "eu-1", issuer.Signing{}), ReasonVerb, "a reporter can only create cells/capacity"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			response, ok, err := r.AuthenticateToken(genericapirequest.WithRequestInfo(t.Context(), tc.request), tc.token)
			if ok || response != nil {
				t.Fatalf("it was let in as %v", response)
			}
			wantFailure(t, err, tc.reason, string(tc.reason)+": "+tc.text, tc.token)
		})
	}
	if _, _, err := r.AuthenticateToken(context.Background(), f.reportToken(t, "eu-1", issuer.Signing{})); err == nil {
		t.Error("a request without RequestInfo was let in")
	}
}

func TestReporterKeysFollowTheRow(t *testing.T) {
	f := newFleet(t)
	r := newReporters(f)
	report := func(token string) bool {
		t.Helper()
		_, ok, _ := r.AuthenticateToken(genericapirequest.WithRequestInfo(t.Context(), capacityOf("eu-1")), token)
		return ok
	}
	token := f.reportToken(t, "eu-1", issuer.Signing{})
	steps := []struct {
		name   string
		change func(*registry.Cluster)
		want   bool
		made   int // key sets since the beginning
	}{
		{"at first", func(*registry.Cluster) {}, true, 1},
		{"a change of state", func(c *registry.Cluster) { c.Spec.State = registry.StateDraining }, true, 1},
		{"another endpoint", func(c *registry.Cluster) { c.Spec.Endpoint = "https://new.example.com" }, true, 2},
		{"another CA", func(c *registry.Cluster) { c.Spec.CABundle = []byte("x") }, true, 3},
		{"another source of keys", func(c *registry.Cluster) { c.Spec.Reporter.Keys = registry.ReporterKeysDiscovery }, true, 4},
		{"another subject", func(c *registry.Cluster) { c.Spec.Reporter.Subject = "b" }, false, 5},
		{"the subject of before", func(c *registry.Cluster) { c.Spec.Reporter.Subject = agent }, true, 6},
		{"another row of that name", func(c *registry.Cluster) { c.UID = "2" }, true, 7},
		{"no reporter", func(c *registry.Cluster) { c.Spec.Reporter = nil }, false, 7},
	}
	for _, step := range steps {
		f.change("eu-1", step.change)
		if got := report(token); got != step.want {
			t.Errorf("%s: let in: %v, want %v", step.name, got, step.want)
		}
		report(token)
		if got := len(f.made); got != step.made {
			t.Errorf("%s: %d key sets were made, want %d", step.name, got, step.made)
		}
	}
}
