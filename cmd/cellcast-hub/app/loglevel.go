package app

import (
	"fmt"
	"io"
	"strings"
)

// logLevel is the least severity that the log shows. The audit trail isn't the
// log: no level applies to it.
type logLevel string

// The levels. More than info is -v's to say.
const (
	levelInfo    logLevel = "info"
	levelWarning logLevel = "warning"
	levelError   logLevel = "error"
)

// Set makes the level a flag.
func (l *logLevel) Set(value string) error {
	switch got := logLevel(value); got {
	case levelInfo, levelWarning, levelError:
		*l = got
		return nil
	default:
		return fmt.Errorf("must be %s, %s or %s", levelInfo, levelWarning, levelError)
	}
}

// String is the level's name.
func (l *logLevel) String() string { return string(*l) }

// Type is what the help shows for a value.
func (l *logLevel) Type() string { return "level" }

// writer drops what is below the level of what is written to out. The log has
// one line a write, which begins with the letter of its severity.
func (l logLevel) writer(out io.Writer) io.Writer {
	switch l {
	case levelWarning:
		return without{out, "I"}
	case levelError:
		return without{out, "IW"}
	default:
		return out
	}
}

// without drops the lines that begin with one of the letters.
type without struct {
	io.Writer
	letters string
}

func (w without) Write(line []byte) (int, error) {
	if len(line) > 0 && strings.IndexByte(w.letters, line[0]) >= 0 {
		return len(line), nil
	}
	return w.Writer.Write(line)
}
