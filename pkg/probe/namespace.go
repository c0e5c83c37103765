package probe

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/probe/contract"
)

// namespace sees that the namespace exists and stays.
func (p *probe) namespace(ctx context.Context) finding {
	name := p.spec.Target.Namespace
	create := onTarget("create", "namespace", name)
	metadata, err := p.api.Metadata(ctx, "/api/v1/namespaces/"+name)
	switch {
	case err == nil && metadata.DeletionTimestamp != nil:
		return failed("Namespace %s is being deleted on the target. Wait until it's gone and create it anew, or register another.", name).
			mendedBy(onTarget("wait", "--for=delete", "namespace/"+name, "--timeout=10m") + " && " + create).ending(registryv1alpha1.TargetFailed)
	case err == nil:
		return passed("Namespace %s exists.", name)
	case failure.Of(err) == failure.NotFound:
		return failed("The target has no namespace %s. Create it, or correct spec.namespace (%s).", name, p.edit()).
			mendedBy(create).ending(registryv1alpha1.TargetFailed)
	case failure.Of(err) == failure.Forbidden:
		remedy := p.grant(contract.Needed)
		do := "."
		if remedy != "" {
			do = ": on the target, apply the one that the probe prints."
		}
		return failed("The credential may not get namespace %s, or there is none: to who may not look, an API server says the same of both. "+
			"If it's there, a Role in it can grant that (get on namespaces)%s", name, do).mendedBy(remedy)
	default:
		return p.trouble(err, "get namespace "+name)
	}
}

// permissions asks for each verb of the contract.
func (p *probe) permissions(ctx context.Context) finding {
	var needed []contract.Right
	for _, right := range contract.Contract() {
		if right.Resource != "namespaces" { // the item before has asked that
			needed = append(needed, right)
		}
	}
	items, missing, err := p.review(ctx, needed)
	if err != nil {
		return p.trouble(err, "review the credential's rights")
	}
	if len(missing) == 0 {
		return passed("The credential may do all that the hub needs.").with(items)
	}
	remedy := p.grant(contract.Needed)
	do := "On the target, apply the Role that the probe prints: it holds all that the hub needs."
	if remedy == "" {
		do = "Give it a Role with these rights."
	}
	return failed("In namespace %s the credential may not %s. %s", p.spec.Target.Namespace, strings.Join(missing, ", "), do).with(items).mendedBy(remedy)
}

// atOnce is how many questions of one item are under way: the client of a target
// has places for a few calls.
const atOnce = 4

// review asks the target for each verb of the rights, on each name where there
// are some. missing are the names of the items that failed.
func (p *probe) review(ctx context.Context, rights []contract.Right) (items []registryv1alpha1.TargetCheckItem, missing []string, err error) {
	questions := p.questions(rights)
	items = make([]registryv1alpha1.TargetCheckItem, len(questions))
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, q := range questions {
		group.Go(func() error {
			may, err := p.api.ReviewAccess(asking, q.attributes)
			items[i] = registryv1alpha1.TargetCheckItem{Name: q.name, Result: registryv1alpha1.CheckFailed}
			if may {
				items[i].Result = registryv1alpha1.CheckPassed
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	for _, item := range items {
		if item.Result != registryv1alpha1.CheckPassed {
			missing = append(missing, item.Name)
		}
	}
	return items, missing, nil
}

// question is a verb of the contract on a resource.
type question struct {
	name       string // "create pods"
	attributes authorizationv1.ResourceAttributes
}

func (p *probe) questions(rights []contract.Right) []question {
	var questions []question
	for _, right := range rights {
		names := right.Names
		if len(names) == 0 {
			names = []string{""}
		}
		resource, subresource, _ := strings.Cut(right.Resource, "/")
		for _, verb := range right.Verbs {
			for _, name := range names {
				questions = append(questions, question{
					name: strings.TrimSpace(fmt.Sprintf("%s %s %s", verb, right.On(), name)),
					attributes: authorizationv1.ResourceAttributes{
						Namespace: p.spec.Target.Namespace, Verb: verb, Group: right.Group,
						Resource: resource, Subresource: subresource, Name: name,
					},
				})
			}
		}
	}
	return questions
}
