package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"cellcast.io/cellcast/pkg/cli/door"
)

// statusOf is the status of an HTTP answer; nil where there was none.
func statusOf(err error) *metav1.Status {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	s := status.Status()
	return &s
}

// unavailable reports whether nobody decided anything: there was no answer, or
// that of something on the way.
func (e *requestError) unavailable() bool {
	s := statusOf(e.err)
	if s == nil {
		return !isTLS(e.err) && !errors.Is(e.err, context.Canceled) &&
			(errors.Is(e.err, context.DeadlineExceeded) || isConnection(e.err))
	}
	switch s.Code {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return !decided(*s)
	default:
		return false
	}
}

// decided reports whether an answer has a cause, as refusals do. client-go adds
// one of its own to what isn't from an API server.
func decided(s metav1.Status) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type != metav1.CauseTypeUnexpectedServerResponse
	})
}

// answered is the report of an HTTP answer that is no refusal of cellcast's;
// false where there was no answer at all.
func answered(asked *requestError, now time.Time) (report, bool) {
	answer := statusOf(asked.err)
	if answer == nil {
		return report{}, false
	}
	s := *answer
	direct := asked.at.Kind == door.Direct
	says := s.Message
	switch s.Code {
	case http.StatusUnauthorized:
		if direct {
			return report{exit: exitRefused, says: "the hub didn't accept " + asked.at.TokenSource,
				next: tokenSays(asked.at.Claims, now)}, true
		}
		return report{exit: exitRefused, says: "the hub's API server didn't accept the credentials of the kubeconfig",
			next: "Log in again; kubectl auth whoami shows whether it worked."}, true
	case http.StatusForbidden:
		return forbidden(s, direct), true
	case http.StatusNotFound:
		return notFound(asked, s), true
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if decided(s) {
			return unknownRefusal(s), true
		}
		return report{exit: exitUnavailable, says: fmt.Sprintf("the hub's cellcast API isn't available (HTTP %d): %s", s.Code, says),
			next: unavailableNext(direct)}, true
	default:
		return report{exit: exitOther, says: fmt.Sprintf("the hub answered with HTTP %d: %s", s.Code, says)}, true
	}
}

// forbidden tells RBAC's refusal, which has no cause, from a refusal that only a
// newer hub knows.
func forbidden(s metav1.Status, direct bool) report {
	if decided(s) {
		return unknownRefusal(s)
	}
	next := "The hub's RBAC says so, not a PlacementPolicy: ask the platform team for a role that permits it."
	if direct {
		next = "The hub's RBAC says so, not a PlacementPolicy: ask the platform team for a role that permits it to the group cellcast.io:pipelines."
	}
	return report{exit: exitRefused, says: s.Message, next: next}
}

// unknownRefusal is the report of a refusal that only a newer hub knows. Nothing
// is known of it but that it's no.
func unknownRefusal(s metav1.Status) report {
	return report{exit: exitRefused, says: s.Message, next: "Update cellcast: this version doesn't know the refusal."}
}

// notFound tells a cell or a target that isn't there from an API that isn't.
func notFound(asked *requestError, s metav1.Status) report {
	served := !apierrors.HasStatusCause(asked.err, metav1.CauseTypeUnexpectedServerResponse)
	switch {
	case asked.about.cell != "" && served:
		return report{exit: exitRefused, says: fmt.Sprintf("there is no cell %q that you may reach", asked.about.cell),
			next: "cellcast cells lists those that you may."}
	case asked.about.target != "" && served:
		return report{exit: exitRefused, says: fmt.Sprintf("there is no target %q", asked.about.target),
			next: "Name its namespace with -n; " + kubectlFor("kubectl get clustertargets -A", asked.at.Kubeconfig, asked.at.Context) +
				" lists all that you may see, and cellcast target register brings a new one."}
	}
	if asked.at.Kind == door.Direct {
		return report{exit: exitOther, says: asked.at.Config.Host + " serves no cellcast API", next: "Check --hub: it's the URL of the hub's own port, without a path."}
	}
	return report{exit: exitOther, says: "this cluster serves no cellcast API",
		next: "Check that the context is the hub's; if it is, cellcast isn't installed or isn't registered: kubectl get apiservice v1alpha1.cellcast.io"}
}

func unavailableNext(direct bool) string {
	if direct {
		return "Retry; if it lasts, the platform team should look at the cellcast-hub pods and at what is in front of them."
	}
	return "Retry; if it lasts, see why: kubectl get apiservice v1alpha1.cellcast.io -o yaml"
}

// tokenSays shows what the caller can compare with the hub's configuration.
func tokenSays(c door.Claims, now time.Time) string {
	expiry := "names no expiry"
	switch {
	case !c.Expiry.IsZero() && c.Expiry.Before(now):
		expiry = fmt.Sprintf("expired %s ago: get a new one", age(now.Sub(c.Expiry)))
	case !c.Expiry.IsZero():
		expiry = "expires in " + age(c.Expiry.Sub(now))
	}
	return fmt.Sprintf("Check issuer, audience and expiry against the hub's AuthenticationConfiguration: "+
		"the token says that it's from %q, for %q, and %s.", c.Issuer, strings.Join(c.Audience, ", "), expiry)
}

// unanswered is the report of a request without an answer.
func unanswered(asked *requestError) report {
	err := asked.err
	says := "the hub didn't answer: " + plain(err)
	switch {
	case isTLS(err):
		next := "Check the certificate-authority-data of the kubeconfig's cluster."
		if asked.at.Kind == door.Direct {
			next = "Check --hub-ca: it must hold the CA of the hub's certificate, and --hub a name that is in it."
		}
		return report{exit: exitOther, says: "there is no trusted connection to the hub: " + plain(err), next: next}
	case errors.Is(err, context.Canceled):
		return report{exit: exitOther, says: "interrupted"}
	case errors.Is(err, context.DeadlineExceeded):
		return report{exit: exitUnavailable, says: says, next: fmt.Sprintf("It had %s (--timeout). Retry, or check the way to %s.", asked.timeout, asked.at.Config.Host)}
	case isConnection(err):
		return report{exit: exitUnavailable, says: says, next: fmt.Sprintf("Retry, or check the way to %s.", asked.at.Config.Host)}
	default:
		return report{exit: exitOther, says: plain(err)}
	}
}

func isTLS(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		record       tls.RecordHeaderError
		alert        tls.AlertError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.As(err, &authority) || errors.As(err, &hostname) || errors.As(err, &invalid) ||
		// What net/http makes of a RecordHeaderError has no type of its own.
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

func isConnection(err error) bool {
	var (
		network net.Error
		dns     *net.DNSError
		op      *net.OpError
	)
	return errors.As(err, &dns) || errors.As(err, &op) || errors.As(err, &network) && network.Timeout() ||
		utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err) || isHTTP2s(plain(err)) || isProxys(plain(err)) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// isHTTP2s reports whether this is what net/http makes of a connection that ended
// between its handshake and the first request, which has no type of its own.
func isHTTP2s(text string) bool {
	return strings.HasPrefix(text, "http2: client conn") || strings.HasPrefix(text, "http2: Transport received Server's graceful shutdown GOAWAY")
}

// isProxys reports whether this is what net/http makes of a proxy's refusal to
// connect, which has no type of its own.
func isProxys(text string) bool {
	switch text {
	case http.StatusText(http.StatusBadGateway), http.StatusText(http.StatusServiceUnavailable), http.StatusText(http.StatusGatewayTimeout):
		return true
	default:
		return false
	}
}

// plain is the error without the method and URL that net/http puts before it.
func plain(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}
