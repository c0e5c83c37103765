package checklist

import (
	"fmt"
	"slices"
	"strings"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/terminal"
)

const (
	// The words beside the results, for an item that has none yet.
	running = "running"
	waiting = "waiting"
	// column is the width of the results with the space after them.
	column = 9
)

// line is an item in one line.
func line(result, name, message string) string {
	text := fmt.Sprintf("%-*s%s", column, terminal.Printable(result), terminal.Printable(name))
	if message = terminal.Printable(message); message != "" {
		text += ": " + message
	}
	return strings.TrimRight(text, " ")
}

// whole is an item in as many lines as it takes, each with its end: where it's
// telling, with the parts that are wrong, and with the remedy.
func whole(c registryv1alpha1.TargetCheck) []string {
	lines := []string{line(string(c.Result), string(c.Name), c.Message) + "\n"}
	if !telling(c) {
		return lines
	}
	for _, part := range c.Items {
		if wrong(part.Result) {
			lines = append(lines, fmt.Sprintf("%*s%-*s%s\n", column, "", column, terminal.Printable(string(part.Result)), terminal.Printable(part.Name)))
		}
	}
	return append(lines, remedy(c.Remedy)...)
}

// remedy is a command or a manifest, ready to be copied: one line is indented; of
// several, such as a manifest that the shell reads up to a mark, an indent would
// become a part.
func remedy(text string) []string {
	var kept []string
	for l := range strings.Lines(text) {
		kept = append(kept, strings.TrimRight(terminal.Printable(strings.TrimRight(l, "\r\n")), " "))
	}
	switch len(kept) {
	case 0:
		return nil
	case 1:
		return []string{fmt.Sprintf("%*s%s\n", column, "", kept[0])}
	}
	return []string{"\n" + strings.Join(kept, "\n") + "\n\n"}
}

// files says in a line what the files are that the shown remedies name, for nothing
// else on the screen does; it's empty where none is named.
func files(checks []registryv1alpha1.TargetCheck) string {
	own, closed := false, false
	for _, c := range checks {
		if telling(c) {
			own = own || slices.Contains(strings.Fields(c.Remedy), "kubeconfig")
			closed = closed || strings.Contains(c.Message+c.Remedy, "FILE")
		}
	}
	var told []string
	if own {
		told = append(told, "The file kubeconfig is your own for the target.")
	}
	if closed {
		told = append(told, "FILE is a kubeconfig of the closed form: server, CA and token.")
	}
	if told == nil {
		return ""
	}
	return strings.Join(told, " ") + "\n"
}
