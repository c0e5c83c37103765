package app

import (
	"bytes"
	"testing"
)

func TestALogLevelShowsWhatIsNotBelowIt(t *testing.T) {
	const info, warning, failure = "I1130 an info\n", "W1130 a warning\n", "E1130 an error\n"
	for level, want := range map[logLevel]string{
		levelInfo:    info + warning + failure,
		levelWarning: warning + failure,
		levelError:   failure,
	} {
		var out bytes.Buffer
		w := level.writer(&out)
		for _, line := range []string{info, warning, failure} {
			if n, err := w.Write([]byte(line)); n != len(line) || err != nil {
				t.Errorf("%s: writing %q: %d, %v", level, line, n, err)
			}
		}
		if out.String() != want {
			t.Errorf("%s shows %q, want %q", level, out.String(), want)
		}
	}
	var level logLevel
	if level.Set("debug") == nil {
		t.Error("debug was taken for a level")
	}
}
