package cell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	strictjson "sigs.k8s.io/json"
)

// maxObject is the most bytes of an object that are decoded, and maxRules those of
// a list of rules. An empty element of a list takes three bytes on the wire and a
// hundred in memory, so the limits are what a cell can make of one answer, times
// forty.
const (
	maxObject = 64 << 10
	maxRules  = 256 << 10
)

// statusAlone lets client-go decode the one object that a failed call comes with,
// in JSON. By its own choice a cell could else have any kind made, of a thousand
// times the bytes that it sent, or send YAML whose aliases are a million times
// what they look like.
type statusAlone struct{ runtime.NegotiatedSerializer }

func newStatusAlone() statusAlone {
	scheme := runtime.NewScheme()
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{})
	return statusAlone{serializer.NewCodecFactory(scheme).WithoutConversion()}
}

// SupportedMediaTypes is JSON.
func (s statusAlone) SupportedMediaTypes() []runtime.SerializerInfo {
	for _, info := range s.NegotiatedSerializer.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON {
			return []runtime.SerializerInfo{info}
		}
	}
	return nil
}

// exchange sends a request, with a body unless it's nil, and reads the answer's
// JSON into the value: so many bytes at most. Where the value is nil it's enough
// that the answer says yes, however long it is. What type the answer says that it is
// makes no difference.
func exchange(ctx context.Context, request *rest.Request, body, into any, most int) error {
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("write the request: %w", err)
		}
		request = request.SetHeader("Content-Type", runtime.ContentTypeJSON).Body(data)
	}
	result := request.MaxRetries(0).Do(withBound(ctx, most))
	if err := result.Error(); err != nil {
		return err
	}
	answer, err := result.Raw()
	switch {
	case err != nil:
		return err
	case into == nil:
		return nil
	case len(answer) > most:
		return tooLong(most)
	}
	if err := strictjson.UnmarshalCaseSensitivePreserveInts(answer, into); err != nil {
		return errors.New("the answer isn't JSON of the expected shape") // the error could quote it
	}
	return nil
}

// document reads what isn't an object.
func document(ctx context.Context, request *rest.Request, path string) ([]byte, error) {
	result := request.MaxRetries(0).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, unserved(err, path)
	}
	text, err := result.Raw()
	if err == nil && len(text) > MaxAnswer {
		return nil, tooLong(MaxAnswer)
	}
	return text, err
}

func tooLong(most int) error { return fmt.Errorf("the answer has more than %d bytes", most) }

// unserved is the error of a path that isn't an object's, with any 404 a clean one:
// an API server says in plain text that it doesn't serve such a path.
func unserved(err error, path string) error {
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "documents"}, path)
	}
	return err
}
