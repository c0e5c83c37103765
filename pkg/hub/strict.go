package hub

import (
	"net/http"
	"net/url"

	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

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
		}
		handler.ServeHTTP(w, r)
	})
}
