package cli

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/door"
)

// hub asks the questions. It asks each once: client-go would repeat a mint up
// to ten times on a 503 with Retry-After, and the caller would not know.
type hub struct {
	at      door.Door
	timeout time.Duration
	rest    rest.Interface
	codec   kruntime.ParameterCodec
	// auditID is that of the last answer.
	auditID atomic.Value
}

// requestError is a question to the hub that wasn't answered as hoped.
type requestError struct {
	err       error
	at        door.Door
	timeout   time.Duration
	requestID string
	// cell is the name of the one cell that was asked for, if one was.
	cell string
}

func (e *requestError) Error() string { return e.err.Error() }
func (e *requestError) Unwrap() error { return e.err }

// openHub goes through the door that the flags name.
func (e Env) openHub(flags door.Flags, timeout time.Duration) (*hub, error) {
	at, err := flags.Open(e.Getenv)
	if err != nil {
		return nil, err
	}
	return connect(at, timeout, e.Err)
}

// connect returns a hub behind a door; it makes no connection yet.
func connect(at door.Door, timeout time.Duration, warnings io.Writer) (*hub, error) {
	scheme := kruntime.NewScheme()
	if err := cellcastv1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	h := &hub{at: at, timeout: timeout, codec: kruntime.NewParameterCodec(scheme)}

	config := rest.CopyConfig(at.Config)
	config.APIPath = "/apis"
	config.GroupVersion = &cellcastv1alpha1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.UserAgent = "cellcast/" + version() + " (" + runtime.GOOS + "/" + runtime.GOARCH + ")"
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
	config.Wrap(h.noteAuditID)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	// A redirect would take the credential along to wherever it points.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	h.rest, err = rest.RESTClientForConfigAndClient(config, client)
	return h, err
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
	if err := h.ask(ctx, "", h.rest.Post().Resource("placements").VersionedParams(strict(dryRun), h.codec).Body(question), answer); err != nil {
		return nil, err
	}
	answer.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("Placement"))
	answer.Spec.Recipient = nil // it was for this one answer
	return answer, unseal(key, answer.Status.Credential)
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
	if err := h.ask(ctx, cell, h.rest.Post().Resource("cells").Name(cell).SubResource("token").VersionedParams(strict(false), h.codec).Body(question), answer); err != nil {
		return nil, err
	}
	answer.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("CellToken"))
	answer.Spec.Recipient = nil
	return answer, unseal(key, answer.Status.Credential)
}

// revoke ends a revocable credential.
func (h *hub) revoke(ctx context.Context, cell string, spec cellcastv1alpha1.CellRevocationSpec) (*cellcastv1alpha1.CellRevocation, error) {
	question := &cellcastv1alpha1.CellRevocation{Spec: spec}
	answer := &cellcastv1alpha1.CellRevocation{}
	err := h.ask(ctx, cell, h.rest.Post().Resource("cells").Name(cell).SubResource("revocation").VersionedParams(strict(false), h.codec).Body(question), answer)
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
	err := h.ask(ctx, "", h.rest.Get().Resource("cells"), list)
	list.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("CellList"))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("Cell"))
	}
	return list, err
}

// cell gets one of them.
func (h *hub) cell(ctx context.Context, name string) (*cellcastv1alpha1.Cell, error) {
	cell := &cellcastv1alpha1.Cell{}
	err := h.ask(ctx, name, h.rest.Get().Resource("cells").Name(name), cell)
	cell.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("Cell"))
	return cell, err
}

func (h *hub) ask(ctx context.Context, cell string, question *rest.Request, answer kruntime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	if err := question.MaxRetries(0).Do(ctx).Into(answer); err != nil {
		id, _ := h.auditID.Load().(string)
		return &requestError{err: err, at: h.at, timeout: h.timeout, requestID: id, cell: cell}
	}
	return nil
}

// noteAuditID keeps the id under which the hub's logs have the request.
func (h *hub) noteAuditID(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if response != nil {
			h.auditID.Store(response.Header.Get("Audit-Id"))
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
