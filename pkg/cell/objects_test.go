package cell_test

import (
	"net/http"
	"testing"

	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/cell/celltest"
	"cellcast.io/cellcast/pkg/cell/failure"
)

// So an API server answers of an API group that it doesn't have, and of its keys
// where it publishes none.
func TestAPathThatIsntServedIsNotFound(t *testing.T) {
	w := newWorld(t, cell.Options{})
	w.cell.Answer(&celltest.Canned{Code: http.StatusNotFound, Header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, Body: "404 page not found\n"})
	client := w.client(t)
	if document, err := client.Document(t.Context(), "/apis/kueue.x-k8s.io"); failure.Of(err) != failure.NotFound || document != nil {
		t.Errorf("a document: %q, %v", document, err)
	}
	if keys, err := client.JWKS(t.Context()); failure.Of(err) != failure.NotFound || keys != nil {
		t.Errorf("the keys: %q, %v", keys, err)
	}
	if _, err := client.Metadata(t.Context(), "/api/v1/namespaces/team"); failure.Of(err) != failure.Unexpected {
		t.Errorf("of an object it's no clean answer: %v", err)
	}
}
