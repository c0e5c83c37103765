package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/terminal"
	"cellcast.io/cellcast/pkg/refusal"
)

// printPlacement prints an answer, and where its credential is.
func (e Env) printPlacement(o *placeOptions, answer *cellcastv1alpha1.Placement) error {
	if err := e.writePlacement(o.format, answer); err != nil {
		return err
	}
	s := answer.Status
	if o.format == formatName {
		e.say("Decided by the %s, with confidence %s.", terminal.Printable(string(s.Source)), terminal.Printable(string(s.Confidence)))
	}
	switch {
	case o.writeKubeconfig != "":
		e.say("Wrote %s with a credential for %s until %s: kubectl --kubeconfig %[1]s",
			o.writeKubeconfig, terminal.Printable(s.Cell.Name), clock(endOf(*s.Credential)))
		if s.Credential.RevokesAt != nil {
			e.say("It ends before that with: cellcast revoke %s", o.writeKubeconfig)
		}
	case o.dryRun == "server":
		e.say("Dry run: no credential was minted.")
	case !o.format.whole():
		e.say("No credential was minted: --write-kubeconfig FILE or -o json gets one.")
	}
	return nil
}

func (e Env) writePlacement(f format, answer *cellcastv1alpha1.Placement) error {
	switch f {
	case formatJSON, formatYAML:
		return f.write(e.Out, answer)
	case formatName:
		_, err := fmt.Fprintln(e.Out, cellName(terminal.Printable(answer.Status.Cell.Name)))
		return err
	default:
		header := []string{"CELL", "POLICY", "NAMESPACE", "SERVICEACCOUNT", "EXPIRES", "SOURCE", "CONFIDENCE"}
		if err := table(e.Out, header, e.placementRow(answer.Status)); err != nil {
			return err
		}
		if len(answer.Status.Candidates) == 0 && answer.Status.HiddenCells == 0 {
			return nil
		}
		return e.writeCandidates(answer.Status)
	}
}

// placementRow never has the token in it.
func (e Env) placementRow(s cellcastv1alpha1.PlacementStatus) []string {
	row := []string{s.Cell.Name, s.Policy, "", "", "", string(s.Source), string(s.Confidence)}
	if c := s.Credential; c != nil {
		row[2], row[3] = c.Namespace, c.ServiceAccountName
		row[4] = age(endOf(*c).Sub(e.Now()))
	}
	return row
}

// writeCandidates writes why each cell was or wasn't chosen.
func (e Env) writeCandidates(s cellcastv1alpha1.PlacementStatus) error {
	return candidatesTable(e.Out, s.Candidates, s.HiddenCells)
}

// writeTrace writes why no cell was chosen, for the person.
func (e Env) writeTrace(t *refusal.Trace) error {
	if err := candidatesTable(e.Err, t.Candidates, t.Hidden); err != nil {
		return err
	}
	if t.Left > 0 {
		e.say("\nThe hub's answer had no room for %d more of the cells that you may reach.", t.Left)
	}
	return nil
}

// candidatesTable is the table, and the number of cells that aren't in it.
func candidatesTable(w io.Writer, candidates []cellcastv1alpha1.Candidate, hiddenCells int32) error {
	rows := [][]string{{"CELL", "VERDICT", "STAGE", "REASON", "UTILISATION", "REPORT-AGE", "MESSAGE"}}
	for _, c := range candidates {
		reported := ""
		if c.ReportAgeSeconds != nil {
			reported = age(time.Duration(*c.ReportAgeSeconds) * time.Second)
		}
		rows = append(rows, []string{c.Cell, string(c.Verdict), string(c.Stage), c.Reason,
			utilisation(c.UtilisationPercent, c.WorstResource), reported, c.Message})
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := table(w, rows...); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, hidden(hiddenCells))
	return err
}

// hidden speaks of the cells that aren't in the table.
func hidden(cells int32) string {
	switch {
	case cells <= 0:
		return ""
	case cells == 1:
		return "\n1 more cell is registered that you may not reach.\n"
	default:
		return fmt.Sprintf("\n%d more cells are registered that you may not reach.\n", cells)
	}
}

// utilisation is a percentage and the resource that it's of.
func utilisation(percent, of string) string {
	if percent == "" {
		return ""
	}
	return strings.TrimSpace(percent + "% " + of)
}
