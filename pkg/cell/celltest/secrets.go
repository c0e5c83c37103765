package celltest

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var secrets = schema.GroupResource{Resource: "secrets"}

// createSecret stores a Secret, as far as RBAC lets the hub.
func (c *Cell) createSecret(w http.ResponseWriter, r *http.Request, namespace string) {
	var secret corev1.Secret
	if json.NewDecoder(r.Body).Decode(&secret) != nil {
		refuse(w, apierrors.NewBadRequest("the body is not a Secret"))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := namespace + "/" + secret.Name
	_, taken := c.secrets[key]
	switch {
	case !c.revocable[namespace]:
		refuse(w, apierrors.NewForbidden(secrets, "", errors.New("the hub cannot create resource secrets")))
	case taken:
		refuse(w, apierrors.NewAlreadyExists(secrets, secret.Name))
	default:
		secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
		secret.Namespace = namespace
		secret.UID = types.UID("uid-of-" + secret.Name)
		secret.CreationTimestamp = metav1.NewTime(c.clock.Now().Add(c.ahead).Truncate(time.Second))
		c.secrets[key] = secret
		answer(w, &secret)
	}
}

func (c *Cell) deleteSecret(w http.ResponseWriter, namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := namespace + "/" + name
	_, there := c.secrets[key]
	switch {
	case !c.revocable[namespace]:
		refuse(w, apierrors.NewForbidden(secrets, name, errors.New("the hub cannot delete resource secrets")))
	case !there:
		refuse(w, apierrors.NewNotFound(secrets, name))
	default:
		delete(c.secrets, key)
		answer(w, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
	}
}
