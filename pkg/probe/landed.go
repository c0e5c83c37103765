package probe

import "fmt"

// landed says why no receipt came, by what was last seen of the pod.
func (p *probe) landed(seen sighting) finding {
	switch seen.stage {
	case unseen:
		if seen.err != nil {
			return p.trouble(seen.err, "get the canary pod")
		}
		return p.neverStarted(seen)
	case waiting:
		return p.neverStarted(seen)
	case running:
		return p.noPost(seen)
	case endedBadly:
		if code := seen.answeredWith(); code != "" {
			return p.postRefused(code)
		}
		return p.noPost(seen)
	case endedWell:
		return failed("The canary's post was taken by something at %s that isn't this hub, for the hub has no receipt of it. "+
			"See what stands before the hub there, or %s.", p.ingestURL(), p.correctURL()).mendedBy(p.edit())
	case gone:
		return failed("Somebody deleted the canary pod before it had reached the hub. See what deletes pods in namespace %s, and probe again.",
			p.spec.Target.Namespace).mendedBy(p.events())
	default:
		return p.noPost(seen)
	}
}

func (p *probe) neverStarted(seen sighting) finding {
	if seen.err != nil && seen.final {
		return p.trouble(seen.err, "get the canary pod")
	}
	why := "the target says nothing of why: see whether it has a node that takes pods"
	if seen.why != "" {
		why = "the target says " + clause(seen.why)
	}
	do := "Its events say more."
	if seen.pulling {
		do = fmt.Sprintf("Its nodes must be able to pull %s: name a pull secret in spec.imagePullSecrets (%s), or ask the hub's operator for an image that they can reach.", p.spec.CanaryImage, p.edit())
	}
	within := fmt.Sprintf(" within %s", receiptWithin)
	if seen.final {
		within = ""
	}
	return failed("The canary pod never started%s; %s. %s", within, why, do).mendedBy(p.events())
}

// noPost is a canary that ran and of which nothing arrived.
func (p *probe) noPost(seen sighting) finding {
	if seen.err != nil && seen.final {
		return p.trouble(seen.err, "get the canary pod")
	}
	said := ""
	if seen.why != "" {
		said = fmt.Sprintf(" The target says of it: %s.", clause(seen.why))
	}
	return failed("The canary pod started, and no post of it arrived. Pods of namespace %s must be able to connect to %s: "+
		"check its NetworkPolicies, the firewall on the way, the cluster's DNS, and that the certificate there is signed by a CA that pods are given.%s",
		p.spec.Target.Namespace, p.ingestURL(), said).mendedBy(p.inNamespace("get", "networkpolicies"))
}

// postRefused is a canary that got answers, and no good one.
func (p *probe) postRefused(code string) finding {
	what := fmt.Sprintf("what answers at %s refused its post (%s)", p.ingestURL(), code)
	switch code {
	case "401":
		return failed("The canary pod started, and %s: the hub didn't believe the token that the target gave it, or it isn't this hub. %s", what, p.trail())
	case "404", "405":
		return failed("The canary pod started, and %s: that isn't the hub's external listener, so %s.", what, p.correctURL()).mendedBy(p.edit())
	case "429", "503":
		return failed("The canary pod started, and %s: it has too much to do now, or can't read the target's keys. Probe again. %s", what, p.trail())
	default:
		return failed("The canary pod started, and %s. %s", what, p.trail())
	}
}

// trail sends the owner to who can read why the listener took no post. The run's
// own log hasn't that: any replica may have answered, or a stranger.
func (p *probe) trail() string {
	return fmt.Sprintf("If it's this hub, its operator finds why in the audit trail, under the name %s.", CanaryName(p.spec.RunID))
}

// correctURL is what to do about a URL at which another than the hub answers.
func (p *probe) correctURL() string {
	if p.spec.Target.IngestURL == "" {
		return "ask the hub's operator, whose --external-url it is, or name another in spec.ingestURL"
	}
	return "correct spec.ingestURL"
}

// events shows what the target's cluster has recorded of the canary, also when the
// pod is gone.
func (p *probe) events() string {
	return p.inNamespace("get", "events", "--field-selector", "involvedObject.name="+CanaryName(p.spec.RunID))
}
