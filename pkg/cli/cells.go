package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/door"
	"cellcast.io/cellcast/pkg/cli/terminal"
)

const cellsHelp = `Show the cells that you may reach: their state, whether their capacity reports
are fresh, and how full they are. A cell takes placements while it's LIVE and
its capacity is Fresh.

`

// cellsOptions is what the user asks for.
type cellsOptions struct {
	door       door.Flags
	timeout    time.Duration
	format     format
	showLabels bool
}

func (e Env) cellsCommand(program string) *cobra.Command {
	o := &cellsOptions{format: formatTable}
	cmd := &cobra.Command{
		Use:     "cells [NAME]",
		Aliases: []string{"cell"},
		Short:   "Show the cells that you may reach",
		Long:    cellsHelp + exitCodes,
		Example: fmt.Sprintf("  %[1]s cells\n  %[1]s cells eu-1 -o yaml", program),
		Args:    cobra.MaximumNArgs(1),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if o.timeout <= 0 {
				return &usageError{"--timeout must be above zero"}
			}
			return e.inFormat(o.format, e.cells(cmd.Context(), o, args))
		}),
	}
	flags := cmd.Flags()
	flags.VarP(&o.format, "output", "o", "how to print the answer")
	flags.BoolVar(&o.showLabels, "show-labels", false, "show the labels, which policies select by")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, timeoutHelp)
	o.door.AddTo(flags)
	return cmd
}

func (e Env) cells(ctx context.Context, o *cellsOptions, args []string) error {
	hub, err := e.openHub(ctx, o.door, o.timeout)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		cell, err := hub.cell(ctx, args[0])
		if err != nil {
			return err
		}
		return e.printCells(o, cell, *cell)
	}
	list, err := hub.cells(ctx)
	if err != nil {
		return err
	}
	return e.printCells(o, list, list.Items...)
}

// printCells prints cells; whole is the answer that they are from.
func (e Env) printCells(o *cellsOptions, whole any, cells ...cellcastv1alpha1.Cell) error {
	switch {
	case o.format.whole():
		return o.format.write(e.Out, whole)
	case len(cells) == 0:
		e.say("No cells: no PlacementPolicy lets you reach one.")
		return nil
	case o.format == formatName:
		for _, c := range cells {
			if _, err := fmt.Fprintln(e.Out, cellName(terminal.Printable(c.Name))); err != nil {
				return err
			}
		}
		return nil
	}
	rows := [][]string{{"NAME", "STATE", "CAPACITY", "UTILISATION", "REPORTED", "POLICIES"}}
	for _, c := range cells {
		rows = append(rows, e.cellRow(c))
	}
	if o.showLabels {
		rows[0] = append(rows[0], "LABELS")
		for i, c := range cells {
			rows[i+1] = append(rows[i+1], labels.FormatLabels(c.Labels))
		}
	}
	return table(e.Out, rows...)
}

func (e Env) cellRow(c cellcastv1alpha1.Cell) []string {
	reported := ""
	if c.Status.ReportedAt != nil {
		reported = age(e.Now().Sub(c.Status.ReportedAt.Time))
	}
	return []string{c.Name, c.Status.State, string(c.Status.Capacity),
		utilisation(c.Status.UtilisationPercent, c.Status.WorstResource), reported, strings.Join(c.Status.Policies, ",")}
}
