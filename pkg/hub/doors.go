package hub

import (
	"context"
	"errors"

	genericaudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/union"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/caller"
	"cellcast.io/cellcast/pkg/registry"
)

// authenticate replaces the delegating authenticator: the direct door asks
// nobody about a token, so that junk costs the hub's API server nothing.
func (s *Server) authenticate(info *genericapiserver.AuthenticationInfo) error {
	headers := info.RequestHeaderConfig
	if headers == nil {
		return errors.New("the hub's API server publishes no request header configuration, so that nobody could come in through it: " +
			"see ConfigMap extension-apiserver-authentication in kube-system")
	}
	info.Authenticator = noting(caller.Authenticator(caller.Doors{
		// The hub's API server asks for our OpenAPI as a user without groups.
		HubUsers: group.NewAuthenticatedGroupAdder(headerrequest.NewDynamicVerifyOptionsSecure(headers.CAContentProvider.VerifyOptions,
			headers.AllowedClientNames, headers.UsernameHeaders, headers.UIDHeaders, headers.GroupHeaders, headers.ExtraHeaderPrefixes)),
		Reporters: caller.NewReporters(caller.ReporterOptions{
			Clusters: rows{s.registry},
			Keys:     s.reporters,
			Audience: s.config.ReporterAudience,
		}),
		Pipelines: s.pipelines,
		Peers:     s.peerAuthenticator(),
		OnFailure: s.authenticationFailed,
		// Authorization still asks the hub's RBAC about /metrics.
		Open: append([]string{"/healthz", "/livez", "/readyz", "/metrics"}, AdmissionPaths()...),
	}), s.clock)
	return nil
}

// authorize puts the rule about reports and the relay before the delegated
// authorizer, which allows administrators everything.
func (s *Server) authorize(info *genericapiserver.AuthorizationInfo) error {
	var err error
	info.Authorizer, err = union.New(
		union.NamedAuthorizer{AuthorizerName: "cellcast.io/reports", Authorizer: caller.Authorizer()},
		union.NamedAuthorizer{AuthorizerName: "cellcast.io/hub", Authorizer: info.Authorizer},
	)
	return err
}

// authenticationFailed audits a token that was shown and not believed.
func (s *Server) authenticationFailed(ctx context.Context, f *caller.Failure) {
	klog.FromContext(ctx).V(2).Info("A token was refused", "reason", f.Reason, "err", f)
	_ = s.audit.Write(audit.Record{ // nothing is issued, and the loss is counted
		Time: s.clock.Now(), Event: audit.EventAuthenticationFailed, Outcome: audit.OutcomeRefused,
		AuditID: genericaudit.GetAuditIDTruncated(ctx), Issuer: f.Issuer, Cell: f.Cell, Reason: string(f.Reason),
	})
}

// rows finds the row of a cell for the reporters.
type rows struct{ registry *registry.Registry }

func (r rows) Cluster(name string) (*registryv1alpha1.Cluster, bool) {
	return r.registry.View().Cluster(name)
}
