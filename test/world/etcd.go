package world

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
)

// newEtcd makes a store of control planes, which isn't started yet, and returns
// it with its client URL. It keeps to loopback and asks nobody who they are, so that whoever tries cellcast
// can look at all that is stored. It doesn't sync: the state needn't survive the
// machine.
func newEtcd(w *World, name string) (*Process, string, error) {
	port, err := w.ports.take()
	if err != nil {
		return nil, "", err
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	return w.table.add(command{
		name:  name,
		path:  filepath.Join(w.assets.kube, "etcd"),
		ready: func(ctx context.Context) error { return serves(ctx, http.DefaultClient, url+"/readyz") },
		args: []string{
			"--name=world",
			"--data-dir=" + filepath.Join(w.Dir, name),
			"--unsafe-no-fsync",
			"--listen-client-urls=" + url,
			"--advertise-client-urls=" + url,
			"--listen-peer-urls=http://127.0.0.1:0",
		},
	}), url, nil
}

// serves returns nil when the URL answers 200.
func serves(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}
