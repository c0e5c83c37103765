package agent

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/agent/commitment"
)

// door is the hub as the reporter needs it. An error that carries an API
// status is the hub's answer.
type door interface {
	report(ctx context.Context, cell string, report *v1alpha1.CellCapacity) error
}

// reporter sends one report per heartbeat. Nothing is buffered: each attempt,
// also the one after a failure, counts the cell anew.
type reporter struct {
	cell  string
	total func(now time.Time) (commitment.Total, error)
	// revocable are the namespaces in which credentials are being ended now.
	revocable func(now time.Time) []string
	hub       door
	pace      pace
	metrics   *metrics
	// sequence is that of the last attempt.
	sequence int64
	// last is the outcome of the last attempt, empty before the first.
	last outcome
}

// run reports, at once and then with every heartbeat, until ctx is done.
func (r *reporter) run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := r.heartbeat(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// heartbeat makes one attempt and returns the wait before the next.
func (r *reporter) heartbeat(ctx context.Context) time.Duration {
	err := r.attempt(ctx, time.Now())
	if ctx.Err() != nil {
		return 0
	}
	o := outcomeOf(err)
	wait := r.pace.next(o, advisedWait(err))
	r.metrics.observe(o, time.Now())
	r.log(klog.FromContext(ctx), o, err, wait)
	r.last = o
	return wait
}

func (r *reporter) attempt(ctx context.Context, now time.Time) error {
	total, err := r.total(now)
	if err != nil {
		return err
	}
	// A clock that was set back must not make a replay of the next report.
	r.sequence = max(now.UnixNano(), r.sequence+1)
	return r.hub.report(ctx, r.cell, &v1alpha1.CellCapacity{
		ObjectMeta: metav1.ObjectMeta{Name: r.cell},
		Spec: v1alpha1.CellCapacitySpec{
			Sequence:            r.sequence,
			ObservedAt:          metav1.NewMicroTime(now),
			Nodes:               total.Nodes,
			Allocatable:         v1alpha1.ResourceList(total.Allocatable),
			Requested:           v1alpha1.ResourceList(total.Requested),
			RevocableNamespaces: r.revocable(now),
		},
	})
}

// log tells of every report that wasn't accepted, and of the first that is.
func (r *reporter) log(logger klog.Logger, o outcome, err error, wait time.Duration) {
	switch o {
	case accepted:
		if r.last != accepted {
			logger.Info("The hub accepts the reports of this cell", "cell", r.cell)
			return
		}
		logger.V(2).Info("Report accepted", "cell", r.cell)
	case refused:
		logger.Error(err, "The hub refused the report", "cell", r.cell, "status", statusOf(err), "next", advice(err))
	case withheld:
		logger.Error(err, "Report withheld", "cell", r.cell, "retryIn", wait)
	case failed:
		logger.Error(err, "The report didn't reach the hub or wasn't answered", "cell", r.cell, "retryIn", wait)
	}
}
