package target

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/rest/call"
	"cellcast.io/cellcast/pkg/rest/resource"
)

// Requests asks for probes. Whoever leads the replicas runs them.
type Requests interface {
	// Request asks for a run with the id, or joins the one that is under way. It
	// returns the id of the run.
	Request(ctx context.Context, row *registryv1alpha1.ClusterTarget, id string, now time.Time) (run string, joined bool, err error)
}

// ProbeStorage takes questions for a probe. Everyone may ask whom RBAC lets,
// owner or not.
type ProbeStorage struct {
	resource.ClusterTarget

	Rows     Rows
	Requests Requests
	Audit    audit.Sink
	Now      func() time.Time
}

var (
	_ rest.Storage              = &ProbeStorage{}
	_ rest.Scoper               = &ProbeStorage{}
	_ rest.SingularNameProvider = &ProbeStorage{}
	_ rest.NamedCreater         = &ProbeStorage{}
)

// New returns an empty TargetProbe.
func (*ProbeStorage) New() runtime.Object { return &cellcastv1alpha1.TargetProbe{} }

// Create asks for a probe of the named target and doesn't wait for it. A dry run
// says whether it would join a run, and which; of a run that would have to be
// made there is no id.
func (s *ProbeStorage) Create(ctx context.Context, name string, obj runtime.Object, _ rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	question, ok := obj.(*cellcastv1alpha1.TargetProbe)
	if !ok {
		return nil, fmt.Errorf("a question for a probe was expected, not %T", obj)
	}
	c, err := call.From(ctx, s.Now())
	if err != nil {
		return nil, err
	}
	p := &place{namespace: genericapirequest.NamespaceValue(ctx), name: name}
	record := c.Record(audit.EventProbeRequested)
	record.DryRun = options != nil && dryrun.IsDryRun(options.DryRun)
	joined, err := s.request(ctx, c, p, question, &record)
	p.Describe(&record)
	// What is asked for stays asked, whether or not the trail took it.
	if err = call.Conclude(s.Audit, record, err, c.Started, s.Now(), refusal.PlacementUnavailable); err != nil {
		return nil, c.Answer(ctx, err)
	}
	return &cellcastv1alpha1.TargetProbe{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.name},
		Status:     cellcastv1alpha1.TargetProbeStatus{RequestID: c.ID, Run: record.Run, Joined: joined},
	}, nil
}

// request asks for the run, and puts its id into the record.
func (s *ProbeStorage) request(ctx context.Context, c call.Call, p *place, question *cellcastv1alpha1.TargetProbe, record *audit.Record) (joined bool, err error) {
	if p.row, err = find(ctx, s.Rows, p, question.Name); err != nil {
		return false, err
	}
	if p.row.DeletionTimestamp != nil {
		return false, refusal.New(refusal.TargetNotReady, "target %s can't be probed: %s", p, deleting)
	}
	if record.DryRun {
		record.Run, joined = underWay(p.row, c.Started)
		return joined, nil
	}
	record.Run, joined, err = s.Requests.Request(ctx, p.row, string(uuid.NewUUID()), c.Started)
	return joined, err
}
