package world

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLife is how long the tokens last that the world issues to the programs
// it starts. A world lives less long, so that none needs renewing.
const tokenLife = 24 * time.Hour

// User is somebody at a control plane.
type User struct {
	// Kubeconfig is the path of their kubeconfig, readable by its owner alone.
	Kubeconfig string

	config *rest.Config
}

// Config returns a client configuration of the user's, without a limit on the
// rate of requests. It's the caller's to change.
func (u User) Config() *rest.Config { return rest.CopyConfig(u.config) }

// User makes a user of the control plane by client certificate: any name, in
// any groups. A second call with the same name replaces the kubeconfig.
func (c *ControlPlane) User(name string, groups ...string) (User, error) {
	pair, err := c.ca.client(name, groups...)
	if err != nil {
		return User{}, err
	}
	return c.user(name, clientcmdapi.AuthInfo{ClientCertificateData: pair.cert, ClientKeyData: pair.key})
}

// ServiceAccount makes a user of a ServiceAccount that exists, by a token for
// the API server that lasts a day.
func (c *ControlPlane) ServiceAccount(ctx context.Context, namespace, name string) (User, error) {
	token, err := c.Token(ctx, namespace, name, tokenLife)
	if err != nil {
		return User{}, err
	}
	return c.user(namespace+"."+name, clientcmdapi.AuthInfo{Token: token})
}

// Token issues a token of a ServiceAccount, at least ten minutes long. No
// audience means the API server's own.
func (c *ControlPlane) Token(ctx context.Context, namespace, name string, life time.Duration, audiences ...string) (string, error) {
	client, err := kubernetes.NewForConfig(c.Admin.config)
	if err != nil {
		return "", fmt.Errorf("connecting to %s: %w", c.Name, err)
	}
	seconds := int64(life.Seconds())
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds},
	}
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("issuing a token of %s/%s on %s: %w", namespace, name, c.Name, err)
	}
	return answer.Status.Token, nil
}

func (c *ControlPlane) user(name string, auth clientcmdapi.AuthInfo) (User, error) {
	content := clientcmdapi.NewConfig()
	content.Clusters[c.Name] = &clientcmdapi.Cluster{Server: c.URL, CertificateAuthorityData: c.CABundle}
	content.AuthInfos[name] = &auth
	content.Contexts[c.Name] = &clientcmdapi.Context{Cluster: c.Name, AuthInfo: name}
	content.CurrentContext = c.Name

	path := filepath.Join(c.dir, url.PathEscape(name)+".kubeconfig")
	if err := clientcmd.WriteToFile(*content, path); err != nil {
		return User{}, fmt.Errorf("writing the kubeconfig of %s: %w", name, err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*content, nil).ClientConfig()
	if err != nil {
		return User{}, fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
	}
	config.QPS = -1
	return User{Kubeconfig: path, config: config}, nil
}
