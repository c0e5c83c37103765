package hub

import (
	"io"
	"net/http"
	"net/url"

	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// drained is a body that is read to its end before it's closed, also where it
// was refused for its size: over HTTP/2 the client would else see its stream
// cut, and no answer.
type drained struct{ io.ReadCloser }

// maxDrained is how much of a body is read for that alone.
const maxDrained = 16 << 20

func (d drained) Close() error {
	_, _ = io.CopyN(io.Discard, d.ReadCloser, maxDrained)
	return d.ReadCloser.Close()
}

// withStrictDecoding makes every create of the group refuse unknown and
// duplicate fields, whatever the client asks for, and a query that can't be
// read: a misspelt `dark`, `ttl` or `dryRun` must not become the default.
func withStrictDecoding(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := genericapirequest.RequestInfoFrom(r.Context())
		if ok && info.IsResourceRequest && info.APIGroup == cellcastv1alpha1.GroupName && info.Verb == "create" {
			// A pair that can't be read must not be dropped: it may say dryRun.
			query, err := url.ParseQuery(r.URL.RawQuery)
			if err != nil {
				http.Error(w, "the query can't be read: separate its parts by & and escape their values", http.StatusBadRequest)
				return
			}
			query.Set("fieldValidation", "Strict")
			r = r.Clone(r.Context())
			r.URL.RawQuery = query.Encode()
			r.Body = drained{r.Body}
		}
		handler.ServeHTTP(w, r)
	})
}
