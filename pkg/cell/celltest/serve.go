package celltest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// serve answers as an API server does: who, then may it, then what.
func (c *Cell) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	user, hung, down, canned := c.user(r), c.hung, c.down, c.canned
	c.seen = append(c.seen, Request{r.Method, r.URL.Path, r.UserAgent(), r.Header.Get("Audit-ID"), user})
	c.mu.Unlock()

	switch {
	case hung != nil:
		select {
		case <-hung:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case down:
		panic(http.ErrAbortHandler)
	case canned != nil:
		for name, values := range canned.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(canned.Code)
		_, _ = w.Write([]byte(strings.ReplaceAll(canned.Body, Echo, r.Header.Get("Authorization")))) //nolint:gosec // a test asked for it
	case user == "":
		refuse(w, apierrors.NewUnauthorized("Unauthorized"))
	default:
		c.route(w, r, user)
	}
}

func (c *Cell) route(w http.ResponseWriter, r *http.Request, user string) {
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/openid/v1/jwks":
		w.Header().Set("Content-Type", "application/jwk-set+json")
		_, _ = w.Write(c.JWKS())
	case r.Method == http.MethodPost && r.URL.Path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		c.whoAmI(w, user)
	case r.Method == http.MethodPost && len(segments) == 7 && segments[2] == "namespaces" && segments[4] == "serviceaccounts" && segments[6] == "token":
		c.createToken(w, r, segments[3], segments[5])
	case r.Method == http.MethodPost && len(segments) == 5 && segments[2] == "namespaces" && segments[4] == "secrets":
		c.createSecret(w, r, segments[3])
	case r.Method == http.MethodDelete && len(segments) == 6 && segments[2] == "namespaces" && segments[4] == "secrets":
		c.deleteSecret(w, segments[3], segments[5])
	default:
		http.NotFound(w, r)
	}
}

func (c *Cell) whoAmI(w http.ResponseWriter, user string) {
	answer(w, &authenticationv1.SelfSubjectReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
		Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{
			Username: user, Groups: []string{"system:authenticated"},
		}},
	})
}

func (c *Cell) createToken(w http.ResponseWriter, r *http.Request, namespace, name string) {
	c.mu.Lock()
	mintable, exists := c.mintable[namespace+"/"+name], c.accounts[namespace+"/"+name]
	shortest, tamper, unbound := c.shortest, c.tamper, c.unbound
	c.mu.Unlock()

	resource := schema.GroupResource{Resource: "serviceaccounts"}
	var request authenticationv1.TokenRequest
	switch {
	case !mintable:
		refuse(w, apierrors.NewForbidden(resource, name, errors.New("the hub cannot create resource serviceaccounts/token")))
		return
	case !exists:
		refuse(w, apierrors.NewNotFound(resource, name))
		return
	case json.NewDecoder(r.Body).Decode(&request) != nil:
		refuse(w, apierrors.NewBadRequest("the body is not a TokenRequest"))
		return
	}
	life := time.Duration(ptr.Deref(request.Spec.ExpirationSeconds, 3600)) * time.Second
	if life < 10*time.Minute {
		refuse(w, apierrors.NewInvalid(schema.GroupKind{Group: "authentication.k8s.io", Kind: "TokenRequest"}, "", nil))
		return
	}
	if shortest > 0 && shortest < life {
		life = shortest
		w.Header().Add("Warning", `299 - "requested expiration shortened"`)
	}
	claims := c.ServiceAccountClaims(namespace, name, request.Spec.Audiences, life)
	if bound := request.Spec.BoundObjectRef; bound != nil && !unbound {
		claims.Kubernetes = &Kubernetes{Secret: &Bound{Name: bound.Name, UID: string(bound.UID)}}
	}
	request.Status.ExpirationTimestamp = metav1.Unix(claims.Expiry, 0)
	if tamper != nil {
		tamper(&claims)
	}
	request.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"}
	request.Status.Token = c.Sign(claims)
	answer(w, &request)
}

func answer(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(object)
}

func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}
