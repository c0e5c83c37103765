package targets

import (
	"crypto/ecdsa"
	"maps"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// podKey signs the tokens of a fake target's pods.
type podKey struct {
	id      string
	private *ecdsa.PrivateKey
}

func newPodKey(t *testing.T, id string) podKey {
	t.Helper()
	return podKey{id, newKey(t)}
}

// sign makes a token of any claims.
func (k podKey) sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", k.id)
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: k.private}, options))(t)
	return must(jwt.Signed(signer).Claims(claims).Serialize())(t)
}

// key is the one that the target signs with at present: the one it published last.
func (f *fakeTarget) key() podKey {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.published[len(f.published)-1]
}

// rotate publishes this key, and no other any more.
func (f *fakeTarget) rotate(to podKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.published = []podKey{to}
}

func (f *fakeTarget) keySet() jose.JSONWebKeySet {
	f.mu.Lock()
	defer f.mu.Unlock()
	var set jose.JSONWebKeySet
	for _, k := range f.published {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Algorithm: string(jose.ES256), Use: "sig"})
	}
	return set
}

// claims are those of the token that the pod has, with some changed; nil takes one
// away.
func (f *fakeTarget) claims(pod *corev1.Pod, changes map[string]any) map[string]any {
	now := time.Now()
	claims := map[string]any{
		"iss": f.issuer, "aud": []string{hub.Hub.ExternalURL}, "jti": string(uuid.NewUUID()),
		"sub": "system:serviceaccount:" + pod.Namespace + ":" + pod.Spec.ServiceAccountName,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(),
		"kubernetes.io": boundTo(pod.Namespace, pod.Spec.ServiceAccountName, map[string]any{"name": pod.Name, "uid": string(pod.UID)}),
	}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

// boundTo is Kubernetes' own claim; pod may be nil.
func boundTo(namespace, serviceAccount string, pod map[string]any) map[string]any {
	claim := map[string]any{"namespace": namespace, "serviceaccount": map[string]any{"name": serviceAccount, "uid": string(uuid.NewUUID())}}
	if pod != nil {
		claim["pod"] = pod
	}
	return claim
}

// token is a new one of the pod's own.
func (f *fakeTarget) token(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	return f.key().sign(t, f.claims(pod, nil))
}
