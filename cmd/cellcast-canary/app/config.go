package app

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"time"
)

// The environment variables that the canary is told by.
const (
	envURL      = "CELLCAST_INGEST_URL" // the hub's external listener
	envCA       = "CELLCAST_INGEST_CA"  // PEM; none means the system's roots
	envPod      = "CELLCAST_POD"        // the pod's own name
	envRun      = "CELLCAST_RUN"        // the probe run's id, told back in the body
	envToken    = "CELLCAST_TOKEN_FILE" //nolint:gosec // the name of a variable, no credential
	envDeadline = "CELLCAST_DEADLINE"   // a Go duration
)

const (
	defaultTokenFile = "/var/run/secrets/cellcast.io/token" //nolint:gosec // a path, no credential
	defaultDeadline  = 90 * time.Second
)

// podName is what Kubernetes lets a pod be called.
var podName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// config is the environment, read once.
type config struct {
	url       string // where the body goes
	roots     *x509.CertPool
	run       string
	tokenFile string
	deadline  time.Duration
}

func configure(getenv func(string) string) (config, error) {
	c := config{run: getenv(envRun), tokenFile: getenv(envToken), deadline: defaultDeadline}
	if c.tokenFile == "" {
		c.tokenFile = defaultTokenFile
	}
	var err error
	if c.url, err = destination(getenv(envURL), getenv(envPod)); err != nil {
		return config{}, err
	}
	if ca := getenv(envCA); ca != "" {
		c.roots = x509.NewCertPool()
		if !c.roots.AppendCertsFromPEM([]byte(ca)) {
			return config{}, errors.New(envCA + " holds no PEM certificate")
		}
	}
	if text := getenv(envDeadline); text != "" {
		if c.deadline, err = time.ParseDuration(text); err != nil || c.deadline <= 0 {
			return config{}, fmt.Errorf("%s %q isn't a duration such as 90s", envDeadline, text)
		}
	}
	return c, nil
}

// destination is where the pod of that name posts.
func destination(base, pod string) (string, error) {
	if base == "" {
		return "", errors.New(envURL + " isn't set")
	}
	u, err := url.Parse(base)
	switch {
	case err != nil, u.Scheme != "https", u.Hostname() == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		// Not quoted: a URL with a password in it is among these.
		return "", errors.New(envURL + " isn't an https URL of a host, without user, query and fragment")
	case !podName.MatchString(pod):
		return "", fmt.Errorf("%s %q isn't the name of a pod", envPod, pod)
	}
	return u.JoinPath("api", "pods", pod, "artifacts", "canary").String(), nil
}
