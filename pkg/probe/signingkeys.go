package probe

import (
	"context"
	"errors"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/keyset"
)

const (
	discoveryPath = "/.well-known/openid-configuration"
	// maxIssuer is the most that the row takes.
	maxIssuer = 512
)

// signingKeys reads what the target signs its pods' tokens with, and as whom: by
// these a pod is proven.
func (p *probe) signingKeys(ctx context.Context) finding {
	published, err := p.api.JWKS(ctx)
	if err != nil {
		return p.unread(err)
	}
	document, err := p.api.Document(ctx, discoveryPath)
	if err != nil {
		return p.unread(err)
	}
	keys, err := keyset.Parse(published)
	if err == nil && len(keys) == 0 {
		err = errors.New("the key set has no key that checks a signature")
	}
	if err != nil {
		return p.noKeys(err)
	}
	issuer, err := keyset.Issuer(document)
	if err == nil && (len(issuer) > maxIssuer || !printable(issuer)) {
		err = errors.New("the issuer isn't one that the row can hold")
	}
	if err != nil {
		return failed("The target's %s names no issuer that the hub takes: it must be JSON with an issuer of at most %d printable characters. %s",
			discoveryPath, maxIssuer, p.operator()).because(err)
	}
	identity := registryv1alpha1.TargetIdentity{Issuer: issuer, Audience: p.spec.Ingest.Audience}
	if err := p.progress.Identified(ctx, identity); err != nil {
		return p.unrecorded(ctx, err)
	}
	p.identity = &identity
	return passed("The target's signing keys can be read; its issuer is %s.", quote(issuer))
}

// unread is why the keys couldn't be read.
func (p *probe) unread(err error) finding {
	switch failure.Of(err) {
	case failure.Forbidden:
		remedy, as := p.grantDiscovery(), ""
		if remedy != "" {
			as = ", as the command that the probe prints does"
		}
		return failed("The credential may not read the target's signing keys (/openid/v1/jwks and %s), by which pods prove who they are. By default every ServiceAccount may: "+
			"ask the cluster's administrator to bind ClusterRole system:service-account-issuer-discovery%s.", discoveryPath, as).
			mendedBy(remedy).because(err)
	case failure.NotFound:
		return failed("The target doesn't publish its signing keys (404 at /openid/v1/jwks or %s), by which pods prove who they are. "+
			"Ask the cluster's administrator: its API server does so where its --service-account-issuer is an https URL.", discoveryPath).because(err)
	case failure.Unexpected, failure.Rejected:
		return p.noKeys(err)
	default:
		return p.trouble(err, "read the signing keys")
	}
}

// noKeys quotes nothing of what was published.
func (p *probe) noKeys(err error) finding {
	return failed("What the target publishes as its signing keys isn't a key set that the hub takes: JSON by RFC 7517 of at most 1 MiB and %d keys, "+
		"with an RSA key of 2048 to 8192 bits or an EC key. %s", keyset.MaxKeys, p.operator()).because(err)
}

// unrecorded is progress that the hub couldn't keep: its own fault.
func (p *probe) unrecorded(ctx context.Context, err error) finding {
	if ctx.Err() != nil {
		return interrupted(err)
	}
	return failed("The hub couldn't record how far the probe has come, so it went no further here. Probe again. %s", p.operator()).because(err)
}
