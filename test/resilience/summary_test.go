package resilience

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSummaryCountsByTheEventInWhoseWindowARunBegan(t *testing.T) {
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	events := []*event{{name: "nothing"}, {name: "cell away", began: seconds(10), over: seconds(12)}}
	text := table(summarise(events, []outcome{
		{began: seconds(1), ended: seconds(2)},
		{began: seconds(9), ended: seconds(12), hidden: []string{"MintUnavailable", unsaid}},
		{began: seconds(10), ended: seconds(15), exit: 5, reason: "MintUnavailable"},
		{began: seconds(11), ended: seconds(41), exit: 4, reason: "CapacityUnknown"},
		{began: seconds(20), ended: seconds(21), exit: 5, reason: "MintUnavailable", hidden: []string{"MintUnavailable"}},
	}))
	var got []string
	for line := range strings.Lines(text) {
		got = append(got, strings.Join(strings.Fields(line), " ")) // without the columns
	}
	want := []string{
		"failures nothing: 2 began 2 succeeded p50 1s p99 3s failed: none 1 asked again: 1 MintUnavailable, 1 unsaid",
		"failures cell away: 3 began 0 succeeded p50 0s p99 0s failed: 1 exit 4 CapacityUnknown, 2 exit 5 MintUnavailable 1 asked again: 1 MintUnavailable",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOnlyTheCellThatIsAwayExcusesAFailure(t *testing.T) {
	const began, over = 10 * time.Second, 18 * time.Second
	excusable := outcome{began: 12 * time.Second, ended: 40 * time.Second, exit: 5, reason: "MintUnavailable", message: "cell eu can't be reached"}
	for sentence, tt := range map[string]struct {
		change func(*outcome)
		want   bool
	}{
		"no credential of the cell":              {func(*outcome) {}, true},
		"the cell refused it":                    {func(o *outcome) { o.reason = "MintFailed" }, true},
		"the run was under way when it went":     {func(o *outcome) { o.began = 9 * time.Second }, true},
		"the run was over before":                {func(o *outcome) { o.began, o.ended = 8*time.Second, 9*time.Second }, false},
		"the run began long after it came back":  {func(o *outcome) { o.began = 34 * time.Second }, false},
		"no credential of another cell":          {func(o *outcome) { o.message = "cell us can't be reached" }, false},
		"no decision":                            {func(o *outcome) { o.exit, o.reason = 4, "CapacityUnknown" }, false},
		"another exit code with the same reason": {func(o *outcome) { o.exit = 4 }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			o := excusable
			tt.change(&o)
			if got := excused(o, "eu", began, over); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
