package cli

import (
	"fmt"
	"strings"
	"time"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// printPlacement prints an answer, and where its credential is.
func (e Env) printPlacement(o *placeOptions, answer *cellcastv1alpha1.Placement) error {
	if err := e.writePlacement(o.format, answer); err != nil {
		return err
	}
	s := answer.Status
	switch {
	case o.writeKubeconfig != "":
		e.say("Wrote %s with a credential for %s until %s: kubectl --kubeconfig %[1]s",
			o.writeKubeconfig, printable(s.Cell.Name), s.Credential.ExpirationTimestamp.UTC().Format(time.RFC3339))
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
		_, err := fmt.Fprintln(e.Out, cellName(printable(answer.Status.Cell.Name)))
		return err
	default:
		header := []string{"CELL", "POLICY", "NAMESPACE", "SERVICEACCOUNT", "EXPIRES", "CONFIDENCE"}
		if err := table(e.Out, header, e.placementRow(answer.Status)); err != nil {
			return err
		}
		if answer.Spec.Explain || len(answer.Status.Candidates) > 0 {
			return e.writeCandidates(answer.Status)
		}
		return nil
	}
}

// placementRow never has the token in it.
func (e Env) placementRow(s cellcastv1alpha1.PlacementStatus) []string {
	row := []string{s.Cell.Name, s.Policy, "", "", "", string(s.Confidence)}
	if c := s.Credential; c != nil {
		row[2], row[3] = c.Namespace, c.ServiceAccountName
		row[4] = age(c.ExpirationTimestamp.Sub(e.Now()))
	}
	return row
}

// writeCandidates writes why each cell was or wasn't chosen.
func (e Env) writeCandidates(s cellcastv1alpha1.PlacementStatus) error {
	rows := [][]string{{"CELL", "VERDICT", "STAGE", "REASON", "UTILISATION", "REPORT-AGE", "MESSAGE"}}
	for _, c := range s.Candidates {
		reported := ""
		if c.ReportAgeSeconds != nil {
			reported = age(time.Duration(*c.ReportAgeSeconds) * time.Second)
		}
		rows = append(rows, []string{c.Cell, string(c.Verdict), string(c.Stage), c.Reason,
			utilisation(c.UtilisationPercent, c.WorstResource), reported, c.Message})
	}
	if _, err := fmt.Fprintln(e.Out); err != nil {
		return err
	}
	if err := table(e.Out, rows...); err != nil {
		return err
	}
	_, err := fmt.Fprint(e.Out, hidden(s.HiddenCells))
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
