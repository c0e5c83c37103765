package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/rehearsal"
	"cellcast.io/cellcast/pkg/cli/terminal"
	"cellcast.io/cellcast/pkg/policy"
)

// printRehearsal prints what the hub would decide, and why.
func (e Env) printRehearsal(o *policyTestOptions, a *rehearsal.Answer) error {
	switch {
	case o.format.whole():
		return o.format.write(e.Out, a)
	case o.format == formatName:
		return e.writePolicyName(a.Policy)
	}
	w := &paragraphs{env: e}
	if a.Policy != "" {
		w.line("%s governs %s for workload %s: %s matched.", a.Policy, a.Caller, a.Workload, count(a.Specificity, "constraint"))
	}
	if len(a.Tied) > 0 {
		w.line("It ties with %s, and goes first by its name alone: give one of them another constraint.", strings.Join(a.Tied, ", "))
	}
	w.table(verdictRows(a.Policies))
	if c := a.Credential; c != nil {
		w.table([][]string{
			{"NAMESPACE", "SERVICEACCOUNT", "AUDIENCES", "REVOCABLE", "STRATEGY"},
			{c.Namespace, c.ServiceAccountName, strings.Join(c.Audiences, ","), strconv.FormatBool(c.Revocable), a.Strategy},
		})
	}
	w.table(lifeRows(a.Lives))
	w.table(cellRows(a.Cells))
	if a.OtherCells > 0 {
		w.line("%s outside the policy.", count(int(a.OtherCells), "cell"))
	}
	if a.NoneTakes != "" {
		w.line("None of them would take the placement now: %s", a.NoneTakes)
	}
	return w.err
}

// printTestAtHub prints what the hub decided.
func (e Env) printTestAtHub(o *policyTestOptions, answer *cellcastv1alpha1.Placement) error {
	s := answer.Status
	switch {
	case o.format.whole():
		return o.format.write(e.Out, answer)
	case o.format == formatName:
		return e.writePolicyName(s.Policy)
	}
	w := &paragraphs{env: e}
	w.line("%s governs you for workload %s; by %s the hub would take %s.", s.Policy, o.workload, s.Strategy, s.Cell.Name)
	if w.err != nil {
		return w.err
	}
	return e.writeCandidates(s)
}

// writePolicyName writes the policy as kubectl names objects; nothing for none.
func (e Env) writePolicyName(name string) error {
	if name == "" {
		return nil
	}
	_, err := fmt.Fprintln(e.Out, "placementpolicy.registry.cellcast.io/"+terminal.Printable(name))
	return err
}

func verdictRows(verdicts []rehearsal.Verdict) [][]string {
	rows := [][]string{{"POLICY", "OUTCOME", "SPECIFICITY", "WHY"}}
	for _, v := range verdicts {
		specificity := ""
		if v.Outcome != policy.NoSubject {
			specificity = strconv.Itoa(v.Specificity)
		}
		rows = append(rows, []string{v.Policy, string(v.Outcome), specificity, strings.Join(v.Reasons, "; ")})
	}
	return rows
}

func lifeRows(lives []rehearsal.Life) [][]string {
	rows := [][]string{{"ENV", "TTL", "MAX-TTL"}}
	for _, l := range lives {
		if l.Env == "prod" {
			l.Env = "prod, or any other"
		}
		rows = append(rows, append([]string{l.Env}, ttls(l)...))
	}
	return rows
}

func cellRows(cells []rehearsal.Cell) [][]string {
	rows := [][]string{{"CELL", "STATE", "TAKES-IT", "ENV", "TTL", "MAX-TTL", "MESSAGE"}}
	for _, c := range cells {
		takes := "no"
		if c.Takes {
			takes = "yes"
		}
		row := append([]string{c.Name, string(c.State), takes, c.Env}, ttls(c.Life)...)
		rows = append(rows, append(row, c.Message))
	}
	return rows
}

// ttls is the two columns of a life.
func ttls(l rehearsal.Life) []string {
	if l.Refused != "" {
		return []string{"", l.Refused}
	}
	return []string{short(l.Default.Duration), short(l.Max.Duration)}
}

// short is a duration as people write it, such as 10m.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// count is a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// listed says each of several problems on a line of its own.
func (e Env) listed(err error) error {
	var problems *rehearsal.Problems
	if !errors.As(err, &problems) || len(problems.All) == 1 {
		return err
	}
	for _, problem := range problems.All {
		e.say("%s", terminal.Printable(problem))
	}
	return fmt.Errorf("%d problems: nothing was tested", len(problems.All))
}

// paragraphs writes tables and lines, with an empty line before each table, and
// keeps the first error.
type paragraphs struct {
	env  Env
	some bool
	err  error
}

func (p *paragraphs) line(format string, args ...any) {
	p.some = true
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.env.Out, terminal.Printable(fmt.Sprintf(format, args...)))
	}
}

// table writes rows under a header, nothing where there are none.
func (p *paragraphs) table(rows [][]string) {
	if len(rows) < 2 {
		return
	}
	if p.some {
		p.line("")
	}
	p.some = true
	if p.err == nil {
		p.err = table(p.env.Out, rows...)
	}
}
