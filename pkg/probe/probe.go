// Package probe is the registration checklist of a brought target: whether its
// credential, its namespace and its pods do what the contract asks, item by item,
// and for what doesn't, what to do about it.
//
// Run promises:
//
//   - Every item of registryv1alpha1.TargetChecks stands in the result, in that
//     order. All run, so that an owner sees at once all that is missing, except
//     after one that leaves nothing more to be told: no credential, no API, no
//     namespace.
//   - Why a target can't be connected to is told in one sentence, the same for
//     every cause: a probe isn't a way to look into the hub's network. The cause is
//     a Fault, for the hub's log.
//   - What a target says of itself is cut and stripped before it's repeated, and
//     no content of a Secret is read.
//   - The canary's name is recorded before the pod exists, and the pod is deleted
//     however the run ends, also when ctx does.
//
// It writes nothing on the target but the canary, mends nothing, and knows nothing
// of rows: whoever runs it keeps its progress.
package probe

import (
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// API is a target's API, asked with the registered credential. Its errors have a
// kind of package failure.
type API interface {
	WhoAmI(ctx context.Context) (authenticationv1.UserInfo, error)
	ReviewAccess(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error)
	ReviewRules(ctx context.Context, namespace string) (authorizationv1.SubjectRulesReviewStatus, error)
	Metadata(ctx context.Context, path string) (metav1.ObjectMeta, error)
	Document(ctx context.Context, path string) ([]byte, error)
	JWKS(ctx context.Context) ([]byte, error)
	CreatePod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error)
	GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	PodDeleter
}

// PodDeleter deletes a pod: the one of this UID, or whichever has the name where
// it's empty.
type PodDeleter interface {
	DeletePod(ctx context.Context, namespace, name string, uid types.UID) error
}

// Open reads the credential and gives the target's API. It connects to nothing.
// Its error has a *kubeconfig.Error in its chain where the kubeconfig isn't of the
// closed form, or an Adviser where it can't be read.
type Open func(ctx context.Context) (API, error)

// Adviser is an error of a source of credentials that has something to say to the
// owner of the target.
type Adviser interface {
	error
	// Advice says what's wrong and what to do.
	Advice() string
}

// Progress keeps what a run has found so far, where every replica sees it.
type Progress interface {
	// Checked is told the items so far, after each.
	Checked(ctx context.Context, checks []registryv1alpha1.TargetCheck)
	// Identified is told how pods of the target are proven, before there is one.
	// When it returns, whoever receives a pod's post can know it.
	Identified(ctx context.Context, identity registryv1alpha1.TargetIdentity) error
	// CanaryNamed records what the canary will be called. When it returns, a hub
	// that starts anew can find the pod and delete it.
	CanaryNamed(ctx context.Context, podName string) error
	// CanaryCreated records which pod it is: only that one's post counts.
	CanaryCreated(ctx context.Context, podUID types.UID) error
	// AwaitReceipt returns nil once some replica has recorded the canary's post,
	// and an error when ctx ends before that.
	AwaitReceipt(ctx context.Context) error
	// CanaryDeleted records that the pod is deleted. Its ctx outlives the run's.
	CanaryDeleted(ctx context.Context)
}

// Spec is what is probed.
type Spec struct {
	// Namespace, Name and UID are those of the row in the hub.
	Namespace, Name string
	UID             types.UID
	// Target is the row's spec.
	Target registryv1alpha1.ClusterTargetSpec
	// RunID is the run's; messages name it to the hub's operator.
	RunID string
	// Ingest is the hub's external listener.
	Ingest Ingest
	// CanaryImage is what the canary runs; empty where the hub has none.
	CanaryImage string
}

// Ingest is where pods hand in what they make.
type Ingest struct {
	// URL is the hub's own, used where the row names none.
	URL string
	// CA is the certificates (PEM) to check it by; empty means the roots that the
	// canary's image has.
	CA []byte
	// Audience is what a pod's token must be issued for.
	Audience string
}

// Result is what a run has found. Where ctx ended first it says nothing of the
// target: Checks then tells how far it came.
type Result struct {
	// Checks are all items, in their order.
	Checks []registryv1alpha1.TargetCheck
	// State is Ready, Failed, Unreachable, CredentialRejected or
	// CredentialUnavailable.
	State registryv1alpha1.TargetState
	// Failing is the first item that failed and its message, in one line; empty
	// where none did.
	Failing string
	// Capabilities are what a Ready target is good for.
	Capabilities []registryv1alpha1.TargetCapability
	// Identity is how its pods are proven; nil where that couldn't be found out.
	Identity *registryv1alpha1.TargetIdentity
	// Faults are causes that no message tells, for the hub's log alone.
	Faults []Fault
}

// Fault is why an item ended as it did. It may name addresses.
type Fault struct {
	Check registryv1alpha1.TargetCheckName
	Err   error
}

// Run goes through the checklist. It takes as long as the target makes it take,
// at most some minutes: each call to the target is bounded by itself.
func Run(ctx context.Context, spec Spec, open Open, progress Progress) Result {
	p := &probe{spec: spec, open: open, progress: progress}
	var ended registryv1alpha1.TargetCheckName
	for _, item := range p.items() {
		found := skipped("Not looked at, because %s failed.", ended)
		if ended == "" {
			found = item.look(ctx)
		}
		if found.ends != "" {
			ended, p.state = item.name, found.ends
		}
		p.add(ctx, item.name, found)
	}
	return p.result()
}

// item is an item of the checklist and how it's looked at.
type item struct {
	name registryv1alpha1.TargetCheckName
	look func(context.Context) finding
}

func (p *probe) items() []item {
	return []item{
		{registryv1alpha1.CheckCredential, p.credential},
		{registryv1alpha1.CheckReachable, p.reachable},
		{registryv1alpha1.CheckAuthenticated, p.authenticated},
		{registryv1alpha1.CheckNamespace, p.namespace},
		{registryv1alpha1.CheckPermissions, p.permissions},
		{registryv1alpha1.CheckExcess, p.excess},
		{registryv1alpha1.CheckPullSecrets, p.pullSecrets},
		{registryv1alpha1.CheckSigningKeys, p.signingKeys},
		{registryv1alpha1.CheckTokens, p.tokens},
		{registryv1alpha1.CheckLocalQueue, p.localQueue},
		{registryv1alpha1.CheckSandbox, p.sandbox},
		{registryv1alpha1.CheckCanary, p.canary},
	}
}

// probe is a run under way.
type probe struct {
	spec     Spec
	open     Open
	progress Progress

	// What one item finds and later ones need.
	api  API
	user authenticationv1.UserInfo
	// whoAmI is the answer that Reachable got, which Authenticated reads.
	whoAmI error

	checks       []registryv1alpha1.TargetCheck
	state        registryv1alpha1.TargetState // where the run ended early
	capabilities []registryv1alpha1.TargetCapability
	identity     *registryv1alpha1.TargetIdentity
	faults       []Fault
}

func (p *probe) add(ctx context.Context, name registryv1alpha1.TargetCheckName, found finding) {
	p.checks = append(p.checks, found.check(name))
	if found.fault != nil {
		p.faults = append(p.faults, Fault{name, found.fault})
	}
	p.progress.Checked(ctx, slices.Clone(p.checks))
}

func (p *probe) result() Result {
	r := Result{Checks: p.checks, State: registryv1alpha1.TargetReady, Identity: p.identity, Faults: p.faults}
	if failed := p.failed(); failed != nil {
		r.State, r.Failing = registryv1alpha1.TargetFailed, cut(string(failed.Name)+": "+failed.Message, maxFailing)
	}
	if p.state != "" {
		r.State = p.state
	}
	if r.State == registryv1alpha1.TargetReady {
		r.Capabilities = append([]registryv1alpha1.TargetCapability{registryv1alpha1.CapabilityAgentTurns}, p.capabilities...)
	}
	return r
}

// failed is the first item that failed.
func (p *probe) failed() *registryv1alpha1.TargetCheck {
	i := slices.IndexFunc(p.checks, func(c registryv1alpha1.TargetCheck) bool { return c.Result == registryv1alpha1.CheckFailed })
	if i < 0 {
		return nil
	}
	return &p.checks[i]
}
