// Package placementpolicy keeps the status of PlacementPolicies: whether a
// policy compiles and reaches a cell, whether the hub trusts the issuers that
// it names, and whether another policy ties with it.
//
// The status is a projection of the view that placements are decided by, so
// that what kubectl shows is what the hub does.
package placementpolicy

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/controller/change"
)

// recheck is how soon a change of the trusted issuers, which come from a file,
// shows in the conditions.
const recheck = 30 * time.Second

// Standing is how the hub reads a policy.
type Standing struct {
	// Generation is the one that was read.
	Generation int64
	// Invalid says what is wrong with the policy; empty when it compiles.
	Invalid string
	// Matched is the number of cells that the selector matches.
	Matched int
	// Issuers are those that the policy names.
	Issuers []string
	// Tied are the policies that are exactly as specific for a common caller.
	Tied []string
}

// View is the view that placements are decided by.
type View interface {
	// Standing returns how the policy of this name is read; false when the view
	// doesn't have it yet.
	Standing(name string) (Standing, bool)
}

// Issuers knows whom the hub trusts.
type Issuers interface {
	Issuers() []string
}

// Reconciler keeps the status of one PlacementPolicy at a time.
type Reconciler struct {
	Client  client.Client
	View    View
	Issuers Issuers
	// Audit gets a record of each condition that changed.
	Audit audit.Sink
	Clock clock.PassiveClock
}

// SetupWithManager registers the reconciler. It wakes when a policy's spec
// changes and when the source says that the view was rebuilt.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, rebuilt source.Source) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("placementpolicy").
		For(&registryv1alpha1.PlacementPolicy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(rebuilt).
		Complete(r)
}

// EveryPolicy enqueues each policy there is: a view that was rebuilt may change
// the standing of any.
func EveryPolicy(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []ctrl.Request {
		var policies registryv1alpha1.PlacementPolicyList
		if err := reader.List(ctx, &policies); err != nil {
			return nil
		}
		requests := make([]ctrl.Request, len(policies.Items))
		for i := range policies.Items {
			requests[i].Name = policies.Items[i].Name
		}
		return requests
	}
}

// Reconcile brings the status of a policy up to date. A policy that the view
// doesn't have yet waits for the view.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var policy registryv1alpha1.PlacementPolicy
	if err := r.Client.Get(ctx, req.NamespacedName, &policy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	standing, ok := r.View.Standing(policy.Name)
	if !ok || standing.Generation != policy.Generation {
		return ctrl.Result{}, nil
	}
	before := policy.DeepCopy()
	policy.Status.ObservedGeneration = policy.Generation
	policy.Status.MatchedClusters = int32(standing.Matched)
	set(&policy, registryv1alpha1.ConditionReady, ready(standing))
	set(&policy, registryv1alpha1.ConditionIssuerTrusted, issuerTrusted(standing, r.Issuers.Issuers()))
	set(&policy, registryv1alpha1.ConditionAmbiguous, ambiguous(standing))

	if !equality.Semantic.DeepEqual(before.Status, policy.Status) {
		if err := r.Client.Status().Patch(ctx, &policy, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("patch the status of PlacementPolicy %s: %w", policy.Name, err))
		}
		row := audit.Record{Kind: "PlacementPolicy", Name: policy.Name}
		if err := change.Record(r.Audit, row, before.Status.Conditions, policy.Status.Conditions, r.Clock.Now()); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: recheck}, nil
}

type finding struct {
	status          metav1.ConditionStatus
	reason, message string
}

func ready(s Standing) finding {
	switch {
	case s.Invalid != "":
		return finding{metav1.ConditionFalse, registryv1alpha1.ReasonInvalid, "The policy is left out of every decision: " + s.Invalid}
	case s.Matched == 0:
		return finding{metav1.ConditionFalse, registryv1alpha1.ReasonMatchesNoCell,
			"The clusterSelector matches no registered cell; compare it with kubectl get clusters --show-labels."}
	default:
		return finding{metav1.ConditionTrue, registryv1alpha1.ReasonReachesCells, fmt.Sprintf("The clusterSelector matches %d registered cells.", s.Matched)}
	}
}

func issuerTrusted(s Standing, trusted []string) finding {
	if len(s.Issuers) == 0 {
		return finding{metav1.ConditionTrue, registryv1alpha1.ReasonNoIssuer, "The policy names no issuer."}
	}
	known := make(map[string]bool, len(trusted))
	for _, issuer := range trusted {
		known[issuer] = true
	}
	var unknown []string
	for _, issuer := range s.Issuers {
		if !known[issuer] {
			unknown = append(unknown, issuer)
		}
	}
	if len(unknown) > 0 {
		return finding{metav1.ConditionFalse, registryv1alpha1.ReasonIssuerUnknown,
			"The hub trusts no issuer " + strings.Join(unknown, ", ") + "; add it to the file of --pipeline-authentication-config, spelt exactly so."}
	}
	return finding{metav1.ConditionTrue, registryv1alpha1.ReasonIssuersTrusted, "The hub trusts each issuer that the policy names."}
}

func ambiguous(s Standing) finding {
	if len(s.Tied) > 0 {
		return finding{metav1.ConditionTrue, registryv1alpha1.ReasonTied,
			"Exactly as specific for a common caller, so that the first name governs: " + strings.Join(s.Tied, ", ") + ". Add a constraint to the one that shall win."}
	}
	return finding{metav1.ConditionFalse, registryv1alpha1.ReasonUnique, "No other policy ties with this one."}
}

func set(policy *registryv1alpha1.PlacementPolicy, kind string, f finding) {
	meta.SetStatusCondition(&policy.Status.Conditions, metav1.Condition{
		Type: kind, Status: f.status, Reason: f.reason, Message: f.message,
		ObservedGeneration: policy.Generation,
	})
}
