package decisions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation"
)

// version is that of the file's form.
const version = 1

// file is the form of a file. It repeats the question, so that a file that was
// put under another name isn't taken for the answer to another question.
type file struct {
	Version int `json:"version"`
	Key
	Decision
}

func encode(key Key, d Decision) ([]byte, error) {
	if err := check(d); err != nil {
		return nil, err
	}
	content, err := json.MarshalIndent(file{version, key, d}, "", "  ")
	if err != nil {
		return nil, err
	}
	if content = append(content, '\n'); len(content) > MaxSize {
		return nil, fmt.Errorf("the decision has more than %d bytes", MaxSize)
	}
	return content, nil
}

func decode(key Key, content []byte) (Decision, error) {
	var f file
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return Decision{}, fmt.Errorf("it's damaged: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Decision{}, errors.New("it's damaged: something follows the decision")
	}
	switch {
	case f.Version != version:
		return Decision{}, fmt.Errorf("its version is %d, and %d is known", f.Version, version)
	case f.Key != key:
		return Decision{}, errors.New("it's the answer to another question")
	}
	return f.Decision, check(f.Decision)
}

// check refuses what no hub decides.
func check(d Decision) error {
	endpoint, err := url.Parse(d.Cell.Endpoint)
	switch {
	case len(validation.IsDNS1123Subdomain(d.Cell.Name)) > 0:
		return fmt.Errorf("%q is no name of a cell", d.Cell.Name)
	case err != nil || endpoint.Scheme != "https" || endpoint.Hostname() == "" || endpoint.User != nil:
		return errors.New("the cell has no https endpoint")
	case d.DecidedAt.IsZero():
		return errors.New("it doesn't say when it was decided")
	default:
		return nil
	}
}
