package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/caller"
	"cellcast.io/cellcast/pkg/custody"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/webhook"
	clusterwebhook "cellcast.io/cellcast/pkg/webhook/cluster"
	targetwebhook "cellcast.io/cellcast/pkg/webhook/clustertarget"
	kubeconfigwebhook "cellcast.io/cellcast/pkg/webhook/kubeconfig"
	policywebhook "cellcast.io/cellcast/pkg/webhook/placementpolicy"
)

// maxAdmissionBytes bounds what a webhook reads: a review holds the row before
// and the row after, each at most as large as etcd takes.
const maxAdmissionBytes = 4 << 20

// AdmissionPaths are the paths of the webhooks. Anyone may ask them, for an API
// server that calls a webhook brings no credential. They answer about the row
// that the request holds and change nothing.
func AdmissionPaths() []string {
	return []string{clusterwebhook.Path, policywebhook.Path, targetwebhook.Path, targetwebhook.OwnerPath, kubeconfigwebhook.Path}
}

// installAdmission serves the webhooks.
func (s *Server) installAdmission(ctx context.Context, compiler *policy.Compiler) error {
	own, err := s.ownAudiences(ctx)
	if err != nil {
		return err
	}
	handlers := map[string]admission.Handler{
		clusterwebhook.Path: clusterwebhook.NewHandler(clusterLister{s.registry}, own, auditor{s}),
		policywebhook.Path:  policywebhook.NewHandler(compiler, s.config.TokenMaxTTL, auditor{s}),
		targetwebhook.Path: targetwebhook.NewHandler(clusterLister{s.registry},
			webhook.NewAccess(s.config.HubClient.AuthorizationV1().SubjectAccessReviews()), s.vaultPath(), auditor{s}),
		targetwebhook.OwnerPath: targetwebhook.NewOwnerHandler(),
		kubeconfigwebhook.Path:  kubeconfigwebhook.NewHandler(s.targets.announced, auditor{s}),
	}
	for path, handler := range handlers {
		s.generic.Handler.NonGoRestfulMux.Handle(path,
			fewAtOnce(http.MaxBytesHandler(&admission.Webhook{Handler: handler}, maxAdmissionBytes)))
	}
	return nil
}

// vaultPath is the rule on vaultRefs; nil where the hub has no Vault.
func (s *Server) vaultPath() targetwebhook.VaultPath {
	if s.config.Targets.Vault.Address == "" {
		return nil
	}
	return custody.PathAllowed
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
	return append(answer.Spec.Audiences, s.config.ReporterAudience, caller.PeerAudience, s.config.Targets.Vault.Audience), nil
}

// auditor writes refused credentials into the audit trail.
type auditor struct{ server *Server }

func (a auditor) CredentialRefused(r webhook.CredentialRefusal) {
	_ = a.server.audit.Write(audit.Record{ // the row is kept out either way, and the loss is counted
		Time: a.server.clock.Now(), Event: audit.EventAdmissionRefused, Outcome: audit.OutcomeRefused,
		RequestID: r.RequestID, User: r.User, Kind: r.Kind, Name: r.Name, Message: strings.Join(r.Fields, ", "),
	})
}
