package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cellcast.io/cellcast/test/issuer"
	"cellcast.io/cellcast/test/world"
)

const (
	// paymentsID is the id of the repository that the demo's pipeline runs in.
	paymentsID = "501122334"
	// audience is what its tokens are issued for.
	audience = "cellcast.io/hub"
)

// issue is the demo's CI system: it serves its keys and keeps pipeline.token
// fresh until it's told to stop. It runs as a process of its own, so that it
// lives as long as the fleet; dir is where the demo was started.
func issue(ctx context.Context, dir string) error {
	if err := os.Chdir(dir); err != nil {
		return err
	}
	i, err := issuer.Start(issuer.Options{})
	if err != nil {
		return err
	}
	defer i.Close() //nolint:errcheck // the process ends
	if err := write("issuer-ca.pem", i.CA()); err != nil {
		return err
	}
	for {
		claims := issuer.CIClaims(issuer.Run{
			Repository: "acme/payments", RepositoryID: paymentsID,
			Owner: "acme", OwnerID: "4711", Ref: "refs/heads/main", Audience: audience,
		})
		token, err := i.Sign(claims, issuer.Signing{})
		if err != nil {
			return err
		}
		claims["iss"] = i.URL()
		payload, err := json.Marshal(claims)
		if err != nil {
			return err
		}
		if err := errors.Join(write("claims.json", payload), write("pipeline.token", []byte(token)), write("issuer.url", []byte(i.URL()))); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(5 * time.Minute):
		}
	}
}

// startIssuer starts the CI system and returns the path of the hub's
// configuration of it.
func startIssuer(ctx context.Context, w *world.World) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	process := w.Program("ci-issuer", self, func(context.Context) error {
		if issuerURL() == "" {
			return errors.New("it has written no token yet")
		}
		return nil
	}, "issue", dir)
	if err := process.Start(ctx); err != nil {
		return "", err
	}
	ca, err := os.ReadFile(filepath.Join(folder, "issuer-ca.pem"))
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, folder, "authentication.yaml")
	return path, write("authentication.yaml", fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: %s
    certificateAuthority: |
      %s
    audiences: [%s]
  claimMappings:
    username:
      expression: claims.sub
    extra:
    - key: claims.cellcast.io/repository
      valueExpression: claims.repository
    - key: claims.cellcast.io/repository_id
      valueExpression: claims.repository_id
    - key: claims.cellcast.io/ref
      valueExpression: claims.ref
`, issuerURL(), strings.ReplaceAll(strings.TrimSpace(string(ca)), "\n", "\n      "), audience))
}

// issuerURL is the running issuer's; empty before it runs.
func issuerURL() string {
	url, err := os.ReadFile(filepath.Join(folder, "issuer.url"))
	if err != nil {
		return ""
	}
	return string(url)
}

// write writes a file of the demo's, whole or not at all.
func write(name string, content []byte) error {
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
