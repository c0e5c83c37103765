package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/caller"
	"cellcast.io/cellcast/pkg/metrics"
	"cellcast.io/cellcast/pkg/mint"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/registry"
	"cellcast.io/cellcast/pkg/rest/capacity"
	"cellcast.io/cellcast/pkg/rest/cell"
	"cellcast.io/cellcast/pkg/rest/credential"
	"cellcast.io/cellcast/pkg/rest/placement"
	"cellcast.io/cellcast/pkg/rest/token"
	"cellcast.io/cellcast/pkg/webhook"
	clusterwebhook "cellcast.io/cellcast/pkg/webhook/cluster"
	policywebhook "cellcast.io/cellcast/pkg/webhook/placementpolicy"
)

// The paths of the admission webhooks.
const (
	clusterAdmission = "/admission/clusters"
	policyAdmission  = "/admission/placementpolicies"
)

// maxAdmissionBytes bounds what a webhook reads: a review holds the row before
// and the row after, each at most as large as etcd takes.
const maxAdmissionBytes = 4 << 20

// AdmissionPaths are the paths of the webhooks. Anyone may ask them, for an API
// server that calls a webhook brings no credential. They answer about the row
// that the request holds and change nothing.
func AdmissionPaths() []string { return []string{clusterAdmission, policyAdmission} }

// newGeneric makes the API server with everything that it serves.
func (s *Server) newGeneric(ctx context.Context, compiler *policy.Compiler) error {
	generic := s.config.Generic
	if err := s.authenticate(&generic.Authentication); err != nil {
		return err
	}
	if err := s.authorize(&generic.Authorization); err != nil {
		return err
	}
	generic.AddReadyzChecks(healthz.NamedCheck("warm", func(*http.Request) error {
		if s.warmup.ready(s.clock.Now(), s.expected) {
			return nil
		}
		return errors.New("not every cell has reported yet")
	}))

	server, err := generic.Complete().New("cellcast-hub", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return fmt.Errorf("API server: %w", err)
	}
	s.generic = server
	if err := s.questions().install(server, s.config); err != nil {
		return fmt.Errorf("API of %s: %w", registryv1alpha1.GroupName, err)
	}
	return s.installBeside(ctx, compiler)
}

// authenticate replaces the delegating authenticator: the direct door asks
// nobody about a token, so that junk costs the hub's API server nothing.
func (s *Server) authenticate(info *genericapiserver.AuthenticationInfo) error {
	headers := info.RequestHeaderConfig
	if headers == nil {
		return errors.New("the hub's API server publishes no request header configuration, so that nobody could come in through it: " +
			"see ConfigMap extension-apiserver-authentication in kube-system")
	}
	info.Authenticator = caller.Authenticator(caller.Doors{
		// The hub's API server asks for our OpenAPI as a user without groups.
		HubUsers: group.NewAuthenticatedGroupAdder(headerrequest.NewDynamicVerifyOptionsSecure(headers.CAContentProvider.VerifyOptions,
			headers.AllowedClientNames, headers.UsernameHeaders, headers.UIDHeaders, headers.GroupHeaders, headers.ExtraHeaderPrefixes)),
		Reporters: caller.NewReporters(caller.ReporterOptions{
			Clusters: rows{s.registry},
			Keys:     s.reporters,
			Audience: s.config.ReporterAudience,
		}),
		Pipelines: s.pipelines,
		OnFailure: s.authenticationFailed,
		// Authorization still asks the hub's RBAC about /metrics.
		Open: append([]string{"/healthz", "/livez", "/readyz", "/metrics"}, AdmissionPaths()...),
	})
	return nil
}

// authorize puts the rule about reports before the delegated authorizer, which
// allows administrators everything.
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
	s.audit.Write(audit.Record{
		Time: s.clock.Now(), Event: audit.EventAuthenticationFailed, Outcome: audit.OutcomeRefused,
		Issuer: f.Issuer, Cell: f.Cell, Message: string(f.Reason),
	})
}

// questions are the storages behind the API.
func (s *Server) questions() questions {
	issuer := &credential.Issuer{
		Cell:    func(row *registryv1alpha1.Cluster) (mint.Cell, error) { return s.clients.For(row) },
		Ceiling: s.config.TokenMaxTTL,
		Audit:   s.audit,
		Now:     s.clock.Now,
	}
	return questions{
		placements: &placement.Storage{
			View: s.registry.View, Engine: s.engine, Release: s.index.Release, Warm: s.warm,
			Issuer: issuer, SeesAll: s.seesAll, Audit: s.audit, Now: s.clock.Now,
		},
		cells: &cell.Storage{
			View: s.registry.View, Capacity: s.index, SeesAll: s.seesAll, Now: s.clock.Now,
		},
		cellCapacity: &capacity.Storage{Index: s.index, Audit: s.audit, Now: s.clock.Now},
		cellToken:    &token.Storage{View: s.registry.View, Issuer: issuer, Audit: s.audit, Now: s.clock.Now},
	}
}

// seesAll reports whether the caller may list the rows themselves, and so may
// see every cell.
func (s *Server) seesAll(ctx context.Context) bool {
	user, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return false
	}
	decision, _, err := s.generic.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: user, Verb: "list", ResourceRequest: true,
		APIGroup: registryv1alpha1.GroupName, APIVersion: registryv1alpha1.SchemeGroupVersion.Version, Resource: "clusters",
	})
	return err == nil && decision == authorizer.DecisionAllow
}

// installBeside serves what isn't the API: webhooks and metrics.
func (s *Server) installBeside(ctx context.Context, compiler *policy.Compiler) error {
	mux := s.generic.Handler.NonGoRestfulMux
	own, err := s.ownAudiences(ctx)
	if err != nil {
		return err
	}
	handlers := map[string]admission.Handler{
		clusterAdmission: clusterwebhook.NewHandler(clusterLister{s.registry}, own, auditor{s}),
		policyAdmission:  policywebhook.NewHandler(compiler, s.config.TokenMaxTTL, auditor{s}),
	}
	for path, handler := range handlers {
		mux.Handle(path, fewAtOnce(http.MaxBytesHandler(&admission.Webhook{Handler: handler}, maxAdmissionBytes)))
	}
	mux.Unregister("/metrics")
	mux.Handle("/metrics", metrics.Handler(legacyregistry.DefaultGatherer, ctrlmetrics.Registry, s.metrics))
	return nil
}

// fewAtOnce bounds what strangers can make the open paths cost: two reviews at a
// time, and a second of patience for the others.
func fewAtOnce(handler http.Handler) http.Handler {
	places := make(chan struct{}, 2)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wait, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			handler.ServeHTTP(w, r)
		case <-wait.Done():
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many admission reviews are under way", http.StatusTooManyRequests)
		}
	})
}

// ownAudiences are what the hub's API server and the hub accept tokens for. No
// cell may have one of them: what the hub shows to that cell would be good
// here. The API server tells its own by the token that it issues when none is
// asked for.
func (s *Server) ownAudiences(ctx context.Context) ([]string, error) {
	accounts := s.config.HubClient.CoreV1().ServiceAccounts(s.config.Namespace)
	answer, err := accounts.CreateToken(ctx, s.config.ServiceAccount, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("ask the hub's API server for its own audiences: %w", err)
	}
	if len(answer.Spec.Audiences) == 0 {
		return nil, errors.New("the hub's API server names no audience of its own")
	}
	return append(answer.Spec.Audiences, s.config.ReporterAudience), nil
}

// auditor writes refused credentials into the audit trail.
type auditor struct{ server *Server }

func (a auditor) CredentialRefused(r webhook.CredentialRefusal) {
	a.server.audit.Write(audit.Record{
		Time: a.server.clock.Now(), Event: audit.EventAdmissionRefused, Outcome: audit.OutcomeRefused,
		RequestID: r.RequestID, User: r.User, Message: fmt.Sprintf("%s %s: %v", r.Kind, r.Name, r.Fields),
	})
}

// rows finds the row of a cell for the reporters.
type rows struct{ registry *registry.Registry }

func (r rows) Cluster(name string) (*registryv1alpha1.Cluster, bool) {
	return r.registry.View().Cluster(name)
}
