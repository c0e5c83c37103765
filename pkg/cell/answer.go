package cell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"cellcast.io/cellcast/pkg/secret"
)

// MaxAnswer is the most bytes that are read of a cell's answer. A cell that the
// hub doesn't own may be in the hands of someone else, and must not be able to
// fill the hub's memory.
const MaxAnswer = 1 << 20

// errSwitched says that the cell answered with a status below 200, such as 101
// Switching Protocols. The body is then the bare connection: reading it ends with
// no context.
var errSwitched = errors.New("the cell answered with a status below 200, which it wasn't asked for")

// answer is a body that ends one byte after the bound of its call, so that who reads
// it sees that there was more. Its errors don't repeat the token.
type answer struct {
	io.Reader
	io.Closer
	token secret.Value
}

func (a answer) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = redacted(err, a.token)
	}
	return n, err
}

type boundKey struct{}

// withBound is the context of a call whose answer is read up to so many bytes, and
// not to MaxAnswer.
func withBound(ctx context.Context, most int) context.Context {
	return context.WithValue(ctx, boundKey{}, most)
}

func bound(ctx context.Context) int64 {
	if most, ok := ctx.Value(boundKey{}).(int); ok {
		return int64(most)
	}
	return MaxAnswer
}

// maxFault is the most bytes of an error of the connection. What a cell sends that
// isn't HTTP is quoted in it, and may be as long as the headers.
const maxFault = 1 << 10

// redactedError is an error whose text was changed.
type redactedError struct {
	text  string
	cause error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.cause }

// redacted is the error with its text cut, and without the token that the cell may
// have sent back.
func redacted(err error, token secret.Value) error {
	text := strings.ReplaceAll(err.Error(), token.Reveal(), "[redacted]")
	text = strings.ToValidUTF8(text[:min(len(text), maxFault)], "")
	if text == err.Error() {
		return err
	}
	return &redactedError{text, err}
}

// maxRefusal is the most bytes of an answer that says no which are read. They may
// come to stand in a log.
const maxRefusal = 16 << 10

// withoutToken cuts such an answer, and takes out of it the token that it may
// repeat, as what stands before an API server to debug it does. No redirect is
// followed, and http.Client quotes a Location that it can't read.
func withoutToken(response *http.Response, token secret.Value) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	_ = response.Body.Close()
	if err != nil {
		return fmt.Errorf("read why the cell answers %d: %w", response.StatusCode, err)
	}
	text = bytes.ReplaceAll(text, []byte(token.Reveal()), []byte("[redacted]"))
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	response.Header.Del("Content-Length")
	response.Header.Del("Location")
	return nil
}
