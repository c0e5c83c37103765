package probe

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"cellcast.io/cellcast/pkg/cell/failure"
)

// stage is how far a canary has come, by what the target says of it.
type stage int

const (
	unseen     stage = iota
	waiting          // no node, no image, or not prepared yet
	running          // its process has started
	endedWell        // it says that its post was taken
	endedBadly       // it gave up, or was ended
	gone             // somebody deleted it
)

// sighting is the last that was seen of a canary.
type sighting struct {
	stage stage
	// why is the target's word for it, fit to repeat; empty where it has none.
	why string
	// final says that no receipt can come any more.
	final bool
	// pulling says that the image is what's missing.
	pulling bool
	// err is why it couldn't be looked at.
	err error
}

// then is the next sighting: what was seen before, where nothing new was.
func (s sighting) then(pod *corev1.Pod, err error, uid types.UID) sighting {
	switch {
	case err == nil && pod.UID == uid:
		return sight(pod)
	case err == nil, failure.Of(err) == failure.NotFound:
		return sighting{stage: gone, final: true}
	}
	s.err = err
	s.final = failure.Of(err) == failure.Unauthenticated
	return s
}

func sight(pod *corev1.Pod) sighting {
	var state corev1.ContainerState
	if len(pod.Status.ContainerStatuses) > 0 {
		state = pod.Status.ContainerStatuses[0].State
	}
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		return sighting{stage: endedWell}
	case state.Terminated != nil && state.Terminated.ExitCode == 0:
		return sighting{stage: endedWell}
	case state.Terminated != nil:
		return terminated(state.Terminated)
	case pod.Status.Phase == corev1.PodFailed: // the kubelet didn't take it
		return sighting{stage: waiting, why: reasoned(pod.Status.Reason, pod.Status.Message), final: true}
	case state.Running != nil:
		return sighting{stage: running}
	case state.Waiting != nil:
		return held(state.Waiting)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return sighting{stage: waiting, why: reasoned(c.Reason, c.Message)}
		}
	}
	return sighting{stage: waiting}
}

// terminated is a container that failed: one that never ran, or the canary's own
// last words.
func terminated(t *corev1.ContainerStateTerminated) sighting {
	switch t.Reason {
	case "StartError", "ContainerCannotRun":
		return sighting{stage: waiting, why: reasoned(t.Reason, t.Message), final: true}
	case "Error", "":
		return sighting{stage: endedBadly, why: lastWords(t.Message), final: true}
	default: // OOMKilled
		return sighting{stage: endedBadly, why: reasoned(t.Reason, lastWords(t.Message)), final: true}
	}
}

// held is a container that hasn't started.
func held(w *corev1.ContainerStateWaiting) sighting {
	return sighting{
		stage:   waiting,
		why:     reasoned(w.Reason, w.Message),
		final:   slices.Contains([]string{"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"}, w.Reason),
		pulling: strings.Contains(w.Reason, "Image"),
	}
}

// reasoned joins what Kubernetes has in two fields.
func reasoned(reason, message string) string {
	reason, message = quote(reason), quote(message)
	if message == "" || reason == "" {
		return reason + message
	}
	return cut(reason+": "+message, maxQuote)
}

// lastWords are the canary's last attempt, or else its last line. What follows the
// last attempt only says that it was the last.
func lastWords(output string) string {
	var last string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && (strings.HasPrefix(line, "attempt ") || !strings.HasPrefix(last, "attempt ")) {
			last = line
		}
	}
	return quote(last)
}

// answer is a line in which the canary tells an answer that it got.
var answer = regexp.MustCompile(`^attempt [0-9]+: the hub answered ([0-9]{3})\b`)

// answeredWith is the status that the canary's post was answered with; empty where
// it got no answer.
func (s sighting) answeredWith() string {
	if match := answer.FindStringSubmatch(s.why); match != nil {
		return match[1]
	}
	return ""
}
