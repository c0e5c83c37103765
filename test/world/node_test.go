package world_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"cellcast.io/cellcast/test/world"
	"cellcast.io/cellcast/test/world/worldtest"
)

// audience is what the canary's token is for.
const audience = "cellcast.io/ingest"

// One world with a node serves all questions that leave it as it was.
func TestNode(t *testing.T) {
	worldtest.RequireNode(t)
	before := machine(t)
	began := time.Now()
	w := worldtest.Start(t, world.Options{Cells: []world.CellOptions{{Name: "a", Node: true}, {Name: "b"}}})
	t.Logf("a hub, a cell and a cell with a node were up after %s", time.Since(began).Round(10*time.Millisecond))
	ctx := t.Context()
	cell := w.Cell("a")
	client := kubernetes.NewForConfigOrDie(cell.Admin.Config())
	left := tracesOf(t, cell.Node.Containerd.PID(), cell.Node.Address)

	t.Run("a pod shows the token that the node projected for it", func(t *testing.T) {
		dropBox := newDropBox(t, cell.Node.Address)
		began := time.Now()
		pod, err := client.CoreV1().Pods("default").Create(ctx, canaryPod("canary", dropBox), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := dropBox.await(t)
		t.Logf("the token arrived after %s", time.Since(began).Round(10*time.Millisecond))
		if want := "/api/pods/canary/artifacts/canary"; got.path != want || got.body != `{"run":"r1"}` {
			t.Errorf("posted %s to %s, want the run to %s", got.body, got.path, want)
		}
		review, err := client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: got.token, Audiences: []string{audience}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		user := review.Status.User
		want := []string{"canary", string(pod.UID), world.NodeName}
		if diff := cmp.Diff(want, []string{
			first(user.Extra["authentication.kubernetes.io/pod-name"]),
			first(user.Extra["authentication.kubernetes.io/pod-uid"]),
			first(user.Extra["authentication.kubernetes.io/node-name"]),
		}); diff != "" || user.Username != "system:serviceaccount:default:default" {
			t.Errorf("it is of %q; pod, UID and node (-want +got):\n%s", user.Username, diff)
		}

		poll(t, "the pod is done", func() bool {
			now, err := client.CoreV1().Pods("default").Get(ctx, "canary", metav1.GetOptions{})
			return err == nil && now.Status.Phase == corev1.PodSucceeded
		})
		t.Logf("the pod was done after %s", time.Since(began).Round(10*time.Millisecond))
		log, err := client.CoreV1().Pods("default").GetLogs("canary", &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil || string(log) != "attempt 1: the hub accepted it (200)\n" {
			t.Errorf("its log is %q, %v", log, err)
		}
		if err := client.CoreV1().Pods("default").Delete(ctx, "canary", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		poll(t, "the pod is deleted", func() bool {
			_, err := client.CoreV1().Pods("default").Get(ctx, "canary", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
		t.Logf("the pod was gone after %s", time.Since(began).Round(10*time.Millisecond))
	})
	t.Run("cells trust the hub by what it says on the link to the pods", func(t *testing.T) {
		if !strings.HasPrefix(w.Hub.ExternalURL, "https://"+cell.Node.Address+":") {
			t.Errorf("the external listener is %s, want it on %s", w.Hub.ExternalURL, cell.Node.Address)
		}
		if err := w.Hub.EnsureServiceAccount(ctx, world.Namespace, world.HubServiceAccount); err != nil {
			t.Fatal(err)
		}
		for _, c := range w.Cells {
			if _, err := whoAmI(ctx, hubAt(t, w, c, c.Audience)); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
	})
	t.Run("cellcast-hub listens there for pods and cells, and on loopback for the rest", func(t *testing.T) {
		if err := w.Hub.Deploy(ctx, world.ServerOptions{}); err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(w.Hub.ServerCABundle)
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
		response, err := client.Get(w.Hub.ExternalURL + "/.well-known/openid-configuration")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		if !strings.Contains(string(body), w.Hub.ExternalURL+"/openid/v1/jwks") {
			t.Errorf("the mirror answers %d %s", response.StatusCode, body)
		}
		for address, of := range map[string]string{cell.Node.Address: w.Hub.Server.URL, "127.0.0.1": w.Hub.ExternalURL} {
			u, err := url.Parse(of)
			if err != nil {
				t.Fatal(err)
			}
			if c, err := net.DialTimeout("tcp", net.JoinHostPort(address, u.Port()), time.Second); err == nil {
				_ = c.Close()
				t.Errorf("%s is on %s too", of, address)
			}
		}
	})

	began = time.Now()
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("all was down after %s", time.Since(began).Round(10*time.Millisecond))
	if _, err := net.InterfaceByName(left.name); err == nil {
		t.Errorf("the link %s is left", left.name)
	}
	if groups := left.groups(t); len(groups) > 0 {
		t.Errorf("control groups are left: %v", groups)
	}
	left.ended(t)
	if diff := cmp.Diff(before, machine(t)); diff != "" {
		t.Errorf("the machine (-before +after):\n%s", diff)
	}
}

// canaryPod is a pod as a probe makes it, which posts to the drop-box.
func canaryPod(name string, d *dropBox) *corev1.Pod {
	yes, no, id, life := true, false, int64(65532), int64(600)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &no,
			RestartPolicy:                corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &id, RunAsGroup: &id, FSGroup: &id,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Volumes: []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
					Audience: audience, ExpirationSeconds: &life, Path: "token",
				}}},
			}}}},
			Containers: []corev1.Container{{
				Name: "canary", Image: world.CanaryImage,
				Env: []corev1.EnvVar{
					{Name: "CELLCAST_INGEST_URL", Value: d.url}, {Name: "CELLCAST_INGEST_CA", Value: d.ca},
					{Name: "CELLCAST_POD", Value: name}, {Name: "CELLCAST_RUN", Value: "r1"},
				},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/secrets/cellcast.io", ReadOnly: true}},
			}},
		},
	}
}

// dropBox takes what pods post.
type dropBox struct {
	url, ca string
	posts   chan delivery
}

type delivery struct{ path, token, body string }

func newDropBox(t *testing.T, address string) *dropBox {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	certificate, ca := selfSigned(t, address)
	d := &dropBox{url: "https://" + listener.Addr().String(), ca: ca, posts: make(chan delivery, 10)}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d.posts <- delivery{r.URL.Path, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), string(body)}
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return d
}

func (d *dropBox) await(t *testing.T) delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	select {
	case got := <-d.posts:
		return got
	case <-ctx.Done():
		t.Fatal("nothing was posted within three minutes")
		return delivery{}
	}
}

func selfSigned(t *testing.T, address string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "drop-box"}, IPAddresses: []net.IP{net.ParseIP(address)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func first(values authenticationv1.ExtraValue) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
