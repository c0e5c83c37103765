package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/door"
	"cellcast.io/cellcast/pkg/cli/terminal"
)

const targetsHelp = `Show what you may launch onto: the cells that a policy permits, and the brought
targets whose owner covers you. What can't take a launch now is shown too; -o wide
says why not, and what a target is good for. Below the table stands which secrets a
launch may use there.

Nothing can be launched yet: that comes with dispatch. Tokens for a brought target
are there now (target token).

`

// targetsOptions is what the user asks for.
type targetsOptions struct {
	door                 door.Flags
	timeout              time.Duration
	format               answerFormat
	playbook, repository string
}

func (e Env) targetsCommand(program string) *cobra.Command {
	o := &targetsOptions{format: answerFormat{format: formatTable, also: []format{formatWide, formatJSON, formatYAML}}}
	cmd := &cobra.Command{
		Use:     "targets",
		Short:   "Show what you may launch onto",
		Long:    targetsHelp + exitCodes,
		Example: fmt.Sprintf("  %[1]s targets\n  %[1]s targets --playbook nightly --repository acme/payments -o wide", program),
		Args:    cobra.NoArgs,
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			if o.timeout <= 0 {
				return &usageError{"--timeout must be above zero"}
			}
			return e.inFormat(o.format.format, e.targets(cmd.Context(), o))
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.playbook, "playbook", "", "leave out what is bound to other playbooks")
	flags.StringVar(&o.repository, "repository", "", "leave out what is bound to other repositories")
	flags.VarP(&o.format, "output", "o", "how to print the answer")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, timeoutHelp)
	o.door.AddTo(flags)
	return cmd
}

func (e Env) targets(ctx context.Context, o *targetsOptions) error {
	hub, err := e.openHub(ctx, o.door, o.timeout)
	if err != nil {
		return err
	}
	var selectors []fields.Selector
	for name, value := range map[string]string{"playbook": o.playbook, "repository": o.repository} {
		if value != "" {
			selectors = append(selectors, fields.OneTermEqualSelector(name, value))
		}
	}
	list, err := hub.launchTargets(ctx, fields.AndSelectors(selectors...).String())
	if err != nil {
		return err
	}
	if o.format.whole() {
		return o.format.write(e.Out, list)
	}
	if len(list.Items) == 0 {
		e.say("No targets: no PlacementPolicy lets you reach a cell, and you own no brought target. cellcast target register brings one.")
		return nil
	}
	return e.printTargets(list.Items, o.format.format == formatWide)
}

func (e Env) printTargets(items []cellcastv1alpha1.LaunchTarget, wide bool) error {
	rows := [][]string{{"NAME", "KIND", "WHERE", "STATE", "LAUNCHABLE", "OWNER"}}
	if wide {
		rows[0] = append(rows[0], "ADDRESS", "GOOD-FOR", "POLICIES", "PLAYBOOKS", "REPOSITORIES", "REASON")
	}
	for _, item := range items {
		row := targetRow(item)
		if wide {
			s := item.Status
			row = append(row, item.Name, strings.Join(s.Capabilities, ","), strings.Join(s.Policies, ","),
				strings.Join(s.Playbooks, ","), strings.Join(s.Repositories, ","), s.Reason)
		}
		rows = append(rows, row)
	}
	if err := table(e.Out, rows...); err != nil {
		return err
	}
	_, err := fmt.Fprint(e.Out, secretRules(items))
	return err
}

// targetRow is a cell by its name, or a brought target by that of its row.
func targetRow(item cellcastv1alpha1.LaunchTarget) []string {
	s := item.Status
	name, where := item.Name, "fleet"
	if s.Target != nil {
		name, where = s.Target.Name, "namespace "+s.Target.Namespace
	}
	launchable := "no"
	if s.Launchable {
		launchable = "yes"
	}
	return []string{name, string(s.Kind), where, s.State, launchable, s.Owner}
}

// secretRules says which secrets a launch may use: on the cells at once where that's
// the same on all of them, else with their names. The rule of a brought target speaks
// of that one.
func secretRules(items []cellcastv1alpha1.LaunchTarget) string {
	type of struct {
		kind cellcastv1alpha1.LaunchTargetKind
		rule string
	}
	var rules []of
	names := map[of][]string{}
	ofKind := map[cellcastv1alpha1.LaunchTargetKind]int{}
	for _, item := range items {
		rule := of{item.Status.Kind, item.Status.SecretRule}
		if rule.rule != "" && names[rule] == nil {
			rules = append(rules, rule)
			ofKind[rule.kind]++
		}
		names[rule] = append(names[rule], targetRow(item)[0])
	}
	var out strings.Builder
	for _, rule := range rules {
		on := "any " + string(rule.kind)
		if ofKind[rule.kind] > 1 || rule.kind == cellcastv1alpha1.LaunchTargetClusterTarget {
			on = string(rule.kind) + " " + strings.Join(names[rule], ", ")
		}
		fmt.Fprintf(&out, "\nSecrets on %s: %s\n", terminal.Printable(on), terminal.Printable(rule.rule))
	}
	return out.String()
}
