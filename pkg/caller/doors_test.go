package caller

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"cellcast.io/cellcast/pkg/keyset"
	"cellcast.io/cellcast/test/issuer"
)

func placements() *genericapirequest.RequestInfo {
	return &genericapirequest.RequestInfo{IsResourceRequest: true, Verb: "create", APIGroup: "cellcast.io", APIVersion: "v1alpha1", Resource: "placements"}
}

// frontProxy lets in whom the header names, as if the connection had the hub's
// proxy certificate.
var frontProxy = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
	name := r.Header.Get("X-Remote-User")
	if name == "" {
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, true, nil
})

func TestDoors(t *testing.T) {
	f := newFleet(t)
	ci := startIssuer(t, issuer.Options{})
	pipelines, _ := newPipelines(t, keyset.Options{}, trust{issuer: ci})
	var failures []Reason
	hub := startIssuer(t, issuer.Options{})
	doors := Authenticator(Doors{
		HubUsers: frontProxy, Reporters: newReporters(f), Pipelines: pipelines, Peers: newPeers(t, hub), Open: []string{"/livez"},
		OnFailure: func(_ context.Context, failure *Failure) { failures = append(failures, failure.Reason) },
	})
	pipeline, reporter := sign(t, ci, issuer.Signing{}), f.reportToken(t, "eu-1", issuer.Signing{})
	peer := peerToken(t, hub, issuer.Signing{})
	get := capacityOf("eu-1")
	get.Verb = "get"
	other := capacityOf("eu-1")
	other.APIGroup = "example.com"

	tests := map[string]struct {
		info     *genericapirequest.RequestInfo
		path     string
		user     string // by request header
		bearer   string
		want     string // the type and the name; "" where nobody is let in
		failures []Reason
	}{
		"a pipeline asks for a placement":           {info: placements(), bearer: pipeline, want: "*caller.Pipeline pipeline:" + ci.URL() + "#repo:octo-org/shop:environment:production"},
		"a reporter reports":                        {info: capacityOf("eu-1"), bearer: reporter, want: "*caller.Reporter cellcast.io:reporter:eu-1"},
		"a hub user comes by header":                {info: placements(), user: "ada", want: "*user.DefaultInfo ada"},
		"a hub user comes by header with a token":   {info: placements(), user: "ada", bearer: pipeline, want: "*user.DefaultInfo ada"},
		"a hub user comes to capacity by header":    {info: capacityOf("eu-1"), user: "ada", want: "*user.DefaultInfo ada"},
		"a pipeline comes to capacity":              {info: capacityOf("eu-1"), bearer: pipeline, failures: []Reason{ReasonIssuer}},
		"a pipeline reads capacity":                 {info: get, bearer: pipeline, failures: []Reason{ReasonVerb}},
		"a reporter reads capacity":                 {info: get, bearer: reporter, failures: []Reason{ReasonVerb}},
		"a reporter asks for a placement":           {info: placements(), bearer: reporter, failures: []Reason{ReasonIssuer}},
		"a reporter comes to another group's cells": {info: other, bearer: reporter, failures: []Reason{ReasonIssuer}},
		"a replica relays":                          {info: relay("post"), bearer: peer, want: "*caller.Peer cellcast.io:peer:" + hubSubject},
		"a replica asks for a placement":            {info: placements(), bearer: peer, failures: []Reason{ReasonIssuer}},
		"a replica reports":                         {info: capacityOf("eu-1"), bearer: peer, failures: []Reason{ReasonIssuer}},
		"a replica asks for discovery":              {info: &genericapirequest.RequestInfo{Verb: "get", Path: "/apis"}, bearer: peer, failures: []Reason{ReasonIssuer}},
		"a reporter comes to the relay":             {info: relay("post"), bearer: reporter, failures: []Reason{ReasonIssuer}},
		"a pipeline comes to the relay":             {info: relay("post"), bearer: pipeline, failures: []Reason{ReasonIssuer}},
		"a pipeline comes to another path there":    {info: &genericapirequest.RequestInfo{Verb: "get", Path: "/relay/"}, bearer: pipeline, failures: []Reason{ReasonVerb}},
		"nobody comes to the relay":                 {info: relay("post"), path: "/relay/v1/batch"},
		"junk":                                      {info: placements(), bearer: "junk", failures: []Reason{ReasonMalformed}},
		"no credentials":                            {info: placements()},
		"no credentials on an open path":            {info: &genericapirequest.RequestInfo{}, path: "/livez", want: "*user.DefaultInfo system:anonymous"},
		"bad credentials on an open path":           {info: &genericapirequest.RequestInfo{}, path: "/livez", bearer: "junk", failures: []Reason{ReasonMalformed}},
		"a token where the path was not parsed":     {bearer: pipeline},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			failures = nil
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			if tc.path != "" {
				r.URL.Path = tc.path
			}
			if tc.info != nil {
				r = r.WithContext(genericapirequest.WithRequestInfo(r.Context(), tc.info))
			}
			if tc.user != "" {
				r.Header.Set("X-Remote-User", tc.user)
			}
			if tc.bearer != "" {
				r.Header.Set("Authorization", "Bearer "+tc.bearer)
			}
			response, ok, err := doors.AuthenticateRequest(r)
			got := ""
			if ok {
				got = fmt.Sprintf("%T %s", response.User, response.User.GetName())
			}
			if got != tc.want {
				t.Errorf("let in %q, want %q (%v)", got, tc.want, err)
			}
			if tc.bearer != "" && !ok && err == nil {
				t.Error("a refused token left no error")
			}
			if diff := cmp.Diff(tc.failures, failures); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAuthorizer(t *testing.T) {
	const (
		ofReporter = `the reporter of cell "eu-1" may report the capacity of that cell and nothing else`
		ofOthers   = "capacity is reported by the reporter that the Cluster names, and by nobody else"
	)
	report := func(change func(*authorizer.AttributesRecord)) authorizer.AttributesRecord {
		a := authorizer.AttributesRecord{Verb: "create", APIGroup: "cellcast.io", Resource: "cells", Subresource: "capacity", Name: "eu-1", ResourceRequest: true}
		if change != nil {
			change(&a)
		}
		return a
	}
	placement := authorizer.AttributesRecord{Verb: "create", APIGroup: "cellcast.io", Resource: "placements", ResourceRequest: true}
	discovery := authorizer.AttributesRecord{Verb: "get", Path: "/apis"}
	relayed := authorizer.AttributesRecord{Verb: "post", Path: "/relay/v1/batch"}
	const (
		ofPeer    = "a replica of the hub may post to /relay/v1/batch and do nothing else"
		ofNonPeer = "the relay is for replicas of the hub, and for nobody else"
	)
	peer := &Peer{Subject: hubSubject}
	reporter, admin := &Reporter{Cell: "eu-1"}, &user.DefaultInfo{Name: "root", Groups: []string{"system:masters", "cellcast.io:reporters"}}
	pipeline := &Pipeline{Issuer: "https://ci", Name: "a"}

	tests := map[string]struct {
		user   user.Info
		ask    authorizer.AttributesRecord
		want   authorizer.Decision
		reason string
	}{
		"a reporter reports for its cell":     {reporter, report(nil), authorizer.DecisionAllow, ""},
		"a reporter reports for another":      {reporter, report(func(a *authorizer.AttributesRecord) { a.Name = "eu-2" }), authorizer.DecisionDeny, ofReporter},
		"a reporter reports for no name":      {reporter, report(func(a *authorizer.AttributesRecord) { a.Name = "" }), authorizer.DecisionDeny, ofReporter},
		"a reporter reads":                    {reporter, report(func(a *authorizer.AttributesRecord) { a.Verb = "get" }), authorizer.DecisionDeny, ofReporter},
		"a reporter mints":                    {reporter, report(func(a *authorizer.AttributesRecord) { a.Subresource = "token" }), authorizer.DecisionDeny, ofReporter},
		"a reporter writes to another group":  {reporter, report(func(a *authorizer.AttributesRecord) { a.APIGroup = "registry.cellcast.io" }), authorizer.DecisionDeny, ofReporter},
		"a reporter places":                   {reporter, placement, authorizer.DecisionDeny, ofReporter},
		"a reporter discovers":                {reporter, discovery, authorizer.DecisionDeny, ofReporter},
		"a reporter of no cell":               {&Reporter{}, report(func(a *authorizer.AttributesRecord) { a.Name = "" }), authorizer.DecisionDeny, `the reporter of cell "" may report the capacity of that cell and nothing else`},
		"an administrator reports":            {admin, report(nil), authorizer.DecisionDeny, ofOthers},
		"an administrator patches capacity":   {admin, report(func(a *authorizer.AttributesRecord) { a.Verb = "patch" }), authorizer.DecisionDeny, ofOthers},
		"an administrator places":             {admin, placement, authorizer.DecisionNoOpinion, ""},
		"a pipeline reports":                  {pipeline, report(nil), authorizer.DecisionDeny, ofOthers},
		"a pipeline places":                   {pipeline, placement, authorizer.DecisionNoOpinion, ""},
		"a hub user with a reporter's name":   {&user.DefaultInfo{Name: "cellcast.io:reporter:eu-1"}, report(nil), authorizer.DecisionDeny, ofOthers},
		"a replica relays":                    {peer, relayed, authorizer.DecisionAllow, ""},
		"a replica reads the relay":           {peer, authorizer.AttributesRecord{Verb: "get", Path: "/relay/v1/batch"}, authorizer.DecisionDeny, ofPeer},
		"a replica posts beside it":           {peer, authorizer.AttributesRecord{Verb: "post", Path: "/relay/v1/other"}, authorizer.DecisionDeny, ofPeer},
		"a replica posts a resource so named": {peer, authorizer.AttributesRecord{Verb: "post", Path: "/relay/v1/batch", ResourceRequest: true}, authorizer.DecisionDeny, ofPeer},
		"a replica places":                    {peer, placement, authorizer.DecisionDeny, ofPeer},
		"a replica reports":                   {peer, report(nil), authorizer.DecisionDeny, ofPeer},
		"a replica discovers":                 {peer, discovery, authorizer.DecisionDeny, ofPeer},
		"an administrator relays":             {admin, relayed, authorizer.DecisionDeny, ofNonPeer},
		"an administrator reads below relay":  {admin, authorizer.AttributesRecord{Verb: "get", Path: "/relay/x"}, authorizer.DecisionDeny, ofNonPeer},
		"a pipeline relays":                   {pipeline, relayed, authorizer.DecisionDeny, ofNonPeer},
		"a reporter relays":                   {reporter, relayed, authorizer.DecisionDeny, ofReporter},
		"a hub user with a replica's name":    {&user.DefaultInfo{Name: "cellcast.io:peer:" + hubSubject, Groups: []string{"cellcast.io:peers"}}, relayed, authorizer.DecisionDeny, ofNonPeer},
		"nobody":                              {nil, placement, authorizer.DecisionDeny, "the request carries no identity"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.ask.User = tc.user
			got, reason, err := Authorizer().Authorize(t.Context(), tc.ask)
			if got != tc.want || reason != tc.reason || err != nil {
				t.Errorf("got %v, %q, %v; want %v, %q", got, reason, err, tc.want, tc.reason)
			}
		})
	}
}
