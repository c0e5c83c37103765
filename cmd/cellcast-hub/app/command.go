// Package app turns the flags of cellcast-hub into a running hub.
package app

import (
	"context"
	"errors"
	"log"
	"os"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version/verflag"
)

// NewCommand returns the command cellcast-hub. It runs until ctx is done or
// the hub can't go on.
func NewCommand(ctx context.Context) *cobra.Command {
	o := NewOptions()
	cmd := &cobra.Command{
		Use:   "cellcast-hub",
		Short: "Answers where a workload goes and mints the credential to deploy it there",
		Long: `cellcast-hub is an aggregated API server of a hub cluster. It authenticates
pipelines by the OIDC tokens of their CI, filters the registered cells by policy,
scores the rest by fresh capacity and mints a short-lived ServiceAccount token on
the chosen cell. It stores no credential.

It serves two ports: the direct door (--secure-port), which the hub's API server
proxies to and which pipelines and agents call directly, and the external
listener (--external-port), which serves the hub's OIDC discovery to the cells,
takes what pods hand in, and nothing else.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			verflag.PrintAndExitIfRequested()
			streams := &logsapi.LoggingOptions{ErrorStream: o.LogLevel.writer(os.Stderr), InfoStream: o.LogLevel.writer(os.Stderr)}
			if err := logsapi.ValidateAndApplyWithOptions(o.Logs, streams, nil); err != nil {
				return err
			}
			if err := errors.Join(o.Validate()...); err != nil {
				return err
			}
			config, err := o.Config()
			if err != nil {
				return err
			}
			server, err := config.Complete().New(ctx)
			if err != nil {
				return err
			}
			return server.Run(ctx)
		},
	}
	sections := o.Flags()
	for _, set := range sections.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	cliflag.SetUsageAndHelpFunc(cmd, sections, 100)
	logs.InitLogs()
	log.SetOutput(unquoted{log.Writer()})
	return cmd
}
