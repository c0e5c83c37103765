package hub

import (
	"net/http"

	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// withStrictDecoding makes every create of the group refuse unknown and
// duplicate fields, whatever the client asks for: a misspelt `dark` or `ttl`
// must not become the default.
func withStrictDecoding(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := genericapirequest.RequestInfoFrom(r.Context())
		if ok && info.IsResourceRequest && info.APIGroup == cellcastv1alpha1.GroupName && info.Verb == "create" {
			query := r.URL.Query()
			query.Set("fieldValidation", "Strict")
			r = r.Clone(r.Context())
			r.URL.RawQuery = query.Encode()
		}
		handler.ServeHTTP(w, r)
	})
}
