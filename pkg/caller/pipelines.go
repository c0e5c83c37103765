package caller

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/util/filesystem"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"cellcast.io/cellcast/pkg/keyset"
)

// pollInterval is how often the file is looked at where the file system tells
// of no change.
const pollInterval = 10 * time.Second

// PipelineOptions say which pipelines are trusted.
type PipelineOptions struct {
	// File is the path of the AuthenticationConfiguration. Empty means that no
	// pipeline is trusted.
	File string
	// OnReload is called with the outcome of each attempt to take over a
	// changed file, nil for success. It may be nil.
	OnReload func(error)
	// Keys are the times of the issuers' key sets.
	Keys keyset.Options
}

// Pipelines authenticates pipelines. It follows its file: a removed issuer is
// refused from the moment that the change is seen, an unchanged one keeps its
// keys, and a file that can't be taken over leaves everything as it was.
type Pipelines struct {
	options  PipelineOptions
	compiler authenticationcel.Compiler
	clock    clock.PassiveClock
	issuers  atomic.Pointer[map[string]*trustedIssuer]

	mu   sync.Mutex // held while reloading
	seen []byte     // the content that was last looked at, good or bad
}

var _ authenticator.Token = (*Pipelines)(nil)

// NewPipelines reads the file. One that is bad, or missing, is an error: a hub
// that starts without its issuers would refuse every pipeline.
func NewPipelines(ctx context.Context, o PipelineOptions) (*Pipelines, error) {
	if o.OnReload == nil {
		o.OnReload = func(error) {}
	}
	p := &Pipelines{options: o, clock: o.Keys.Clock, compiler: authenticationcel.NewDefaultCompiler()}
	if p.clock == nil {
		p.clock = clock.RealClock{}
	}
	p.issuers.Store(&map[string]*trustedIssuer{})
	if o.File == "" {
		return p, nil
	}
	if _, err := p.reload(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// AuthenticateToken returns a *Pipeline. The error is a *Failure. The issuer
// that the token claims chooses the entry, and what it claims is checked
// against that entry alone.
func (p *Pipelines) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	unverified, failure := unverifiedClaims(token)
	if failure != nil {
		return nil, false, failure
	}
	issuer, ok := (*p.issuers.Load())[unverified.Issuer]
	if !ok {
		return nil, false, fail(ReasonIssuer, "no issuer %.256q is configured", unverified.Issuer)
	}
	pipeline, failure := issuer.authenticate(ctx, token, p.clock.Now)
	if failure != nil {
		failure.Issuer = issuer.expect.issuer
		return nil, false, failure
	}
	return &authenticator.Response{User: pipeline}, true, nil
}

// Issuers are the issuers that are trusted now, sorted.
func (p *Pipelines) Issuers() []string {
	return slices.Sorted(maps.Keys(*p.issuers.Load()))
}

// Run follows the file until the context ends. After each change it reads the
// keys of every issuer once, so that one that can't be reached is in the log
// before a pipeline fails.
func (p *Pipelines) Run(ctx context.Context) {
	if p.options.File == "" {
		return
	}
	go p.readKeys(ctx)
	filesystem.WatchUntil(ctx, pollInterval, p.options.File, func() { p.follow(ctx) }, func(err error) {
		klog.FromContext(ctx).Error(err, "The authentication configuration can't be watched; it is polled", "file", p.options.File)
	})
}

func (p *Pipelines) follow(ctx context.Context) {
	logger := klog.FromContext(ctx)
	switch changed, err := p.reload(ctx); {
	case err != nil:
		logger.Error(err, "The authentication configuration was not taken over; the one before still holds", "file", p.options.File)
		p.options.OnReload(err)
	case changed:
		logger.Info("The authentication configuration was taken over", "file", p.options.File, "issuers", p.Issuers())
		p.options.OnReload(nil)
		go p.readKeys(ctx)
	}
}

// reload takes over the file if it has changed. A bad content is reported once.
func (p *Pipelines) reload(ctx context.Context) (changed bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	content, err := os.ReadFile(p.options.File)
	if err != nil {
		return false, fmt.Errorf("read the authentication configuration: %w", err)
	}
	if p.seen != nil && bytes.Equal(content, p.seen) {
		return false, nil
	}
	p.seen = content
	config, err := parseConfig(content, p.compiler)
	if err != nil {
		return false, fmt.Errorf("read the authentication configuration: %w", err)
	}
	known := map[source]*keyset.Set{}
	for _, issuer := range *p.issuers.Load() {
		known[issuer.source] = issuer.keys
	}
	issuers := map[string]*trustedIssuer{}
	for _, entry := range config.JWT {
		issuer, err := newTrustedIssuer(ctx, entry, known, p.compiler, p.options.Keys)
		if err != nil {
			return false, fmt.Errorf("take over the authentication configuration: %w", err)
		}
		issuers[entry.Issuer.URL] = issuer
	}
	p.issuers.Store(&issuers)
	return true, nil
}

func (p *Pipelines) readKeys(ctx context.Context) {
	for name, issuer := range *p.issuers.Load() {
		if err := issuer.keys.Refresh(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "The keys of a pipeline issuer can't be read", "issuer", name)
		}
	}
}
