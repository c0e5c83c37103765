package probe

import (
	"errors"
	"fmt"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell/failure"
)

// finding is how an item ended. The zero finding failed without a word: an item
// has to say that it passed.
type finding struct {
	result          registryv1alpha1.CheckResult
	message, remedy string
	items           []registryv1alpha1.TargetCheckItem
	// fault is the cause that the message doesn't tell.
	fault error
	// ends is the target's state where nothing further can be told.
	ends registryv1alpha1.TargetState
}

func found(result registryv1alpha1.CheckResult, format string, args ...any) finding {
	return finding{result: result, message: fmt.Sprintf(format, args...)}
}

func passed(format string, args ...any) finding {
	return found(registryv1alpha1.CheckPassed, format, args...)
}

func failed(format string, args ...any) finding {
	return found(registryv1alpha1.CheckFailed, format, args...)
}

func warning(format string, args ...any) finding {
	return found(registryv1alpha1.CheckWarning, format, args...)
}

func skipped(format string, args ...any) finding {
	return found(registryv1alpha1.CheckSkipped, format, args...)
}

func (f finding) mendedBy(remedy string) finding {
	f.remedy = remedy
	return f
}

func (f finding) with(items []registryv1alpha1.TargetCheckItem) finding {
	f.items = items
	return f
}

func (f finding) because(fault error) finding {
	f.fault = fault
	return f
}

func (f finding) ending(state registryv1alpha1.TargetState) finding {
	f.ends = state
	return f
}

// The bounds of a check, by its type in the row. A row with more in it can't be
// written at all.
const (
	maxMessage  = 2048
	maxRemedy   = 8192
	maxItems    = 64
	maxItemName = 512
	maxFailing  = 512
)

// check is the finding as the row has it.
func (f finding) check(name registryv1alpha1.TargetCheckName) registryv1alpha1.TargetCheck {
	c := registryv1alpha1.TargetCheck{Name: name, Result: f.result, Message: cut(f.message, maxMessage), Remedy: f.remedy}
	if c.Result == "" {
		c.Result = registryv1alpha1.CheckFailed
	}
	if len(c.Remedy) > maxRemedy {
		c.Remedy = "" // half a command is worse than none
	}
	c.Items = bounded(f.items)
	for i := range c.Items {
		c.Items[i].Name = cut(c.Items[i].Name, maxItemName)
	}
	return c
}

// bounded counts the items that don't fit in a last one.
func bounded(items []registryv1alpha1.TargetCheckItem) []registryv1alpha1.TargetCheckItem {
	if len(items) <= maxItems {
		return items
	}
	rest := len(items) - (maxItems - 1)
	last := registryv1alpha1.TargetCheckItem{Name: fmt.Sprintf("and %d more", rest), Result: items[maxItems-1].Result}
	return append(items[:maxItems-1:maxItems-1], last)
}

// trouble is what an item found where its question got no answer that's its own
// to judge. asked says what it was, as in "list the credential's rights".
func (p *probe) trouble(err error, asked string) finding {
	switch failure.Of(err) {
	case failure.Unauthenticated:
		return p.rejected(err)
	case failure.NoHubToken:
		return p.unavailable(err)
	case failure.Unreachable:
		return p.unreachable(err)
	case failure.Interrupted:
		return interrupted(err)
	case failure.Forbidden:
		return failed("The target's API forbids the credential to %s. What it lets every user do, it must let this one do.", asked).because(err)
	case failure.Unavailable:
		return failed("The target's API answered that it can't serve now, when asked to %s. Probe again when it does.", asked).
			mendedBy(readyz()).because(err)
	case failure.NotFound, failure.Rejected, failure.Unexpected:
		return failed("The target's API gave no answer that the hub understands, when asked to %s. %s", asked, p.operator()).
			mendedBy(readyz()).because(err)
	default:
		return failed("The hub couldn't ask the target's API to %s. %s", asked, p.operator()).because(err)
	}
}

// rejected is a credential that the target doesn't know. It's never told as a
// fault of the network.
func (p *probe) rejected(err error) finding {
	const why = "The target's API doesn't accept the token in the kubeconfig (401), also as it was read anew: " +
		"it was deleted, has ended, or is another cluster's. "
	if name := p.otherSecret(); name != "" {
		return failed(why+"Put a kubeconfig of the closed form with a token that works into Secret %s: the command that the probe prints does that.", name).
			mendedBy(p.handIn()).because(err).ending(registryv1alpha1.TargetCredentialRejected)
	}
	return failed(why+"Register again with a new token: with a kubeconfig of yours that works there, the command that the probe prints "+
		"deletes Secret %s, should there be one, and makes another.", p.tokenSecret()).
		mendedBy(p.renew()).because(err).ending(registryv1alpha1.TargetCredentialRejected)
}

// unavailable is a credential that can't be read where its owner keeps it.
func (p *probe) unavailable(err error) finding {
	message := "The hub couldn't read the kubeconfig. " + p.operator()
	if adviser, ok := errors.AsType[Adviser](err); ok {
		message = adviser.Advice()
	}
	return failed("%s", message).because(err).ending(registryv1alpha1.TargetCredentialUnavailable)
}

// unreachable says the same for every cause: what a registrant learns of an
// address must not tell an open port from a closed one, or a name that resolves
// in the hub's network from one that doesn't.
func (p *probe) unreachable(err error) finding {
	return failed("The hub can't connect to the target's API: check that the server in the kubeconfig can be reached from the hub's network, "+
		"that its name resolves there, that certificate-authority-data has the CA that signed its certificate, "+
		"and that the hub's operator permits its address and its port; the operator finds the cause in the hub's log under run %s.", p.spec.RunID).
		because(err).ending(registryv1alpha1.TargetUnreachable)
}

// interrupted is a run that was ended from outside. It says nothing of the target.
func interrupted(err error) finding {
	return failed("The run was ended before this was known. Probe again.").because(err).ending(registryv1alpha1.TargetFailed)
}

// operator sends the owner to who can read the cause.
func (p *probe) operator() string {
	return fmt.Sprintf("The hub's operator finds the cause in its log under run %s.", p.spec.RunID)
}
