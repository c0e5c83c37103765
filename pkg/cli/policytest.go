package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellcast.io/cellcast/pkg/cli/door"
	"cellcast.io/cellcast/pkg/policy"
)

const policyTestHelp = `Say which PlacementPolicy governs a caller and a workload, why the others don't,
what the credential is for and how long it lives, and which cells it reaches.

With -f nothing is asked of a hub: the policies are those in FILE, which must be
all policies of the hub, for one that is left out can't govern. The caller is a
pipeline (--claims) or a user of the hub (--user, --group). A claims file is the
decoded payload of a CI token, a JSON object. This assumes that the hub maps each
claim to its own name, as what cellcast issuer prints does, one within an object
as in kubernetes.io/namespace; a claim that the hub doesn't map counts here all
the same. --cells takes the cells as kubectl get clusters -o yaml prints them;
each counts as fresh and empty, for capacity is the hub's to know.

Without -f the hub is asked, as you: a dry run, which mints nothing.

To gate a pull request, say what must come of it: --expect POLICY, or
--expect-refusal CODE for a caller who must not get through.

`

// policyTestOptions is what the user asks for.
type policyTestOptions struct {
	door     door.Flags
	timeout  time.Duration
	workload string
	dark     bool
	format   format

	policies, cells []string
	claims          string
	user            string
	groups          []string
	maxTTL          time.Duration

	expect expectation
}

func (e Env) policyCommand(program string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Test policies before they ship",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(e.policyTestCommand(program))
	return cmd
}

func (e Env) policyTestCommand(program string) *cobra.Command {
	o := &policyTestOptions{format: formatTable}
	cmd := &cobra.Command{
		Use:   "test --workload WORKLOAD",
		Short: "Say which policy governs a caller and a workload, and why the others don't",
		Long:  policyTestHelp + exitCodes,
		Example: fmt.Sprintf(`  # Before the policies ship: who governs a job on the main branch, and where may it go?
  %[1]s policy test -f policies/ --claims claims/main.json --cells cells.yaml --workload payments/api

  # In the check of a pull request
  %[1]s policy test -f policies/ --claims claims/main.json --workload payments/api --expect payments-prod
  %[1]s policy test -f policies/ --claims claims/fork.json --workload payments/api --expect-refusal NoPolicy

  # At the hub, as you
  %[1]s policy test --workload payments/api`, program),
		Args: cobra.NoArgs,
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags().Changed); err != nil {
				return err
			}
			if len(o.policies) > 0 {
				return e.rehearse(o)
			}
			return e.testAtHub(cmd.Context(), o)
		}),
	}
	o.addTo(cmd)
	return cmd
}

func (o *policyTestOptions) addTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVarP(&o.policies, "filename", "f", nil, "file or folder with the policies, or /dev/stdin; can be repeated")
	f.StringVar(&o.claims, "claims", "", "JSON file with the claims of the pipeline's token")
	f.StringVar(&o.user, "user", "", "user of the hub, such as system:serviceaccount:ci:deployer; in place of --claims")
	f.StringArrayVar(&o.groups, "group", nil, "group of that user, besides system:authenticated and those that ServiceAccounts have; can be repeated")
	f.StringArrayVar(&o.cells, "cells", nil, "file or folder with the Clusters; can be repeated")
	f.DurationVar(&o.maxTTL, "max-ttl", time.Hour, "the hub's --token-max-ttl")
	f.StringVar(&o.workload, "workload", "", "the workload, such as payments/api (required)")
	f.BoolVar(&o.dark, "dark", false, "ask for a dark cell, and for no other")
	f.StringVar(&o.expect.policy, "expect", "", "the policy that must govern: exit with 3 when another one does, or none")
	f.StringVar(&o.expect.refusal, "expect-refusal", "", "the refusal that must come, such as NoPolicy: exit with 3 when none or another one does")
	f.VarP(&o.format, "output", "o", "how to print the answer")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, timeoutHelp+"; without -f")
	o.door.AddTo(f)
}

// check checks what the flags can't check one by one; given says whether a flag
// was.
func (o *policyTestOptions) check(given func(string) bool) error {
	offline := len(o.policies) > 0
	for _, flag := range []string{"claims", "user", "group", "cells", "max-ttl"} {
		if given(flag) && !offline {
			return &usageError{"--" + flag + " goes with -f FILE: without it the hub is asked, as you"}
		}
	}
	for _, flag := range hubFlags() {
		if given(flag) && offline {
			return &usageError{"with -f no hub is asked: leave out --" + flag + ", or -f"}
		}
	}
	switch {
	case o.workload == "":
		return &usageError{"which workload? Name it with --workload, such as payments/api"}
	case offline && o.claims == "" && o.user == "":
		return &usageError{"who asks? Give --claims FILE for a pipeline, or --user NAME for a user of the hub"}
	case o.claims != "" && (o.user != "" || len(o.groups) > 0):
		return &usageError{"a caller is a pipeline or a user of the hub: leave out --claims, or --user and --group"}
	case o.maxTTL < policy.Floor:
		return &usageError{fmt.Sprintf("--max-ttl must be at least %s, as the hub's --token-max-ttl", short(policy.Floor))}
	case o.timeout <= 0:
		return &usageError{"--timeout must be above zero"}
	default:
		return o.expect.check()
	}
}

// hubFlags are the flags that say how to ask the hub.
func hubFlags() []string {
	names := []string{"timeout"}
	var flags pflag.FlagSet
	(&door.Flags{}).AddTo(&flags)
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}
