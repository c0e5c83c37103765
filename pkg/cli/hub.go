package cli

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/door"
)

// hub asks the questions; how often it asks one is in ask.go. client-go, left to
// itself, would repeat a mint up to ten times, and the caller would not know.
type hub struct {
	env     Env
	at      door.Door
	timeout time.Duration
	rest    rest.Interface
	// registry reads the rows, which the hub's API server alone serves.
	registry rest.Interface
	codec    kruntime.ParameterCodec
	// transport is what the questions go through.
	transport http.RoundTripper
	// auditID is that of the last answer.
	auditID atomic.Value
}

// openHub goes through the door that the flags name.
func (e Env) openHub(ctx context.Context, flags door.Flags, timeout time.Duration) (*hub, error) {
	at, err := flags.Open(ctx, e.Getenv)
	if err != nil {
		return nil, err
	}
	return e.connect(at, timeout)
}

// connect returns a hub behind a door; it makes no connection yet.
func (e Env) connect(at door.Door, timeout time.Duration) (*hub, error) {
	scheme := kruntime.NewScheme()
	if err := errors.Join(cellcastv1alpha1.AddToScheme(scheme), registryv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	h := &hub{env: e, at: at, timeout: timeout, codec: kruntime.NewParameterCodec(scheme)}

	config := rest.CopyConfig(at.Config)
	config.APIPath = "/apis"
	config.GroupVersion = &cellcastv1alpha1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS = -1 // ask paces itself
	config.UserAgent = userAgent()
	config.WarningHandler = rest.NewWarningWriter(e.Err, rest.WarningWriterOptions{Deduplicate: true})
	config.Wrap(h.noteAuditID)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	// A redirect would take the credential along to wherever it points.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	h.transport = client.Transport
	if h.rest, err = rest.RESTClientForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	config.GroupVersion = &registryv1alpha1.SchemeGroupVersion
	h.registry, err = rest.RESTClientForConfigAndClient(config, client)
	return h, err
}

// userAgent is how a cluster's audit log shows this program.
func userAgent() string {
	return "cellcast/" + version() + " (" + runtime.GOOS + "/" + runtime.GOARCH + ")"
}

// place creates a placement. A dry run decides and mints nothing; otherwise the
// credential is sealed on its way, and open in the answer.
func (h *hub) place(ctx context.Context, spec cellcastv1alpha1.PlacementSpec, dryRun bool) (*cellcastv1alpha1.Placement, error) {
	key, recipient, err := sealing(dryRun)
	if err != nil {
		return nil, err
	}
	spec.Recipient = recipient
	question := &cellcastv1alpha1.Placement{Spec: spec}
	answer := &cellcastv1alpha1.Placement{}
	if err := h.ask(ctx, about{}, h.rest.Post().Resource("placements").VersionedParams(strict(dryRun), h.codec).Body(question), answer); err != nil {
		return nil, err
	}
	answer.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("Placement"))
	answer.Spec.Recipient = nil // it was for this one answer
	return answer, h.open(ctx, key, answer.Status.Cell.Name, answer.Status.Credential)
}

// token asks for a credential for the named cell, sealed on its way and open in
// the answer.
func (h *hub) token(ctx context.Context, cell string, spec cellcastv1alpha1.CellTokenSpec) (*cellcastv1alpha1.CellToken, error) {
	key, recipient, err := sealing(false)
	if err != nil {
		return nil, err
	}
	spec.Recipient = recipient
	question := &cellcastv1alpha1.CellToken{Spec: spec}
	answer := &cellcastv1alpha1.CellToken{}
	if err := h.ask(ctx, about{cell: cell}, h.rest.Post().Resource("cells").Name(cell).SubResource("token").VersionedParams(strict(false), h.codec).Body(question), answer); err != nil {
		return nil, err
	}
	answer.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("CellToken"))
	answer.Spec.Recipient = nil
	return answer, h.open(ctx, key, cell, answer.Status.Credential)
}

// revoke ends a revocable credential.
func (h *hub) revoke(ctx context.Context, cell string, spec cellcastv1alpha1.CellRevocationSpec) (*cellcastv1alpha1.CellRevocation, error) {
	question := &cellcastv1alpha1.CellRevocation{Spec: spec}
	answer := &cellcastv1alpha1.CellRevocation{}
	err := h.ask(ctx, about{cell: cell}, h.rest.Post().Resource("cells").Name(cell).SubResource("revocation").VersionedParams(strict(false), h.codec).Body(question), answer)
	answer.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("CellRevocation"))
	return answer, err
}

// strict makes the hub refuse a field that it doesn't know, and a dry run one.
func strict(dryRun bool) *metav1.CreateOptions {
	options := &metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return options
}

// cells lists the cells that the caller may reach.
func (h *hub) cells(ctx context.Context) (*cellcastv1alpha1.CellList, error) {
	list := &cellcastv1alpha1.CellList{}
	err := h.ask(ctx, about{}, h.rest.Get().Resource("cells"), list)
	list.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("CellList"))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("Cell"))
	}
	return list, err
}

// cell gets one of them.
func (h *hub) cell(ctx context.Context, name string) (*cellcastv1alpha1.Cell, error) {
	cell := &cellcastv1alpha1.Cell{}
	err := h.ask(ctx, about{cell: name}, h.rest.Get().Resource("cells").Name(name), cell)
	cell.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("Cell"))
	return cell, err
}

// noteAuditID keeps the id under which the hub's logs have the request.
func (h *hub) noteAuditID(next http.RoundTripper) http.RoundTripper {
	return &auditIDNoter{next: next, note: &h.auditID}
}

type auditIDNoter struct {
	next http.RoundTripper
	note *atomic.Value
}

// RoundTrip asks, and notes the id of the answer.
func (n *auditIDNoter) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(r)
	if response != nil {
		n.note.Store(response.Header.Get("Audit-Id"))
	}
	return response, err
}

// WrappedRoundTripper shows the way to the connections, to close them.
func (n *auditIDNoter) WrappedRoundTripper() http.RoundTripper { return n.next }
