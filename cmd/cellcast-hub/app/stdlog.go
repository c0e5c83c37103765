package app

import (
	"bytes"
	"io"
)

// unquoted drops what net/http says of bytes that come on an idle connection. It
// quotes them, and a target may send back the credential that it was shown.
type unquoted struct{ io.Writer }

func (u unquoted) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("Unsolicited response received on idle HTTP channel")) {
		return len(line), nil
	}
	return u.Writer.Write(line)
}
