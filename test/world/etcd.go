package world

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
)

// newEtcd makes the store of all control planes, which isn't started yet. It
// keeps to loopback and asks nobody who they are, so that whoever tries cellcast
// can look at all that is stored. It doesn't sync: the state needn't survive the
// machine.
func newEtcd(w *World) error {
	port, err := w.ports.take()
	if err != nil {
		return err
	}
	w.EtcdURL = fmt.Sprintf("http://127.0.0.1:%d", port)
	w.Etcd = w.table.add(command{
		name:  "etcd",
		path:  filepath.Join(w.assets.kube, "etcd"),
		ready: func(ctx context.Context) error { return serves(ctx, http.DefaultClient, w.EtcdURL+"/readyz") },
		args: []string{
			"--name=world",
			"--data-dir=" + filepath.Join(w.Dir, "etcd"),
			"--unsafe-no-fsync",
			"--listen-client-urls=" + w.EtcdURL,
			"--advertise-client-urls=" + w.EtcdURL,
			"--listen-peer-urls=http://127.0.0.1:0",
		},
	})
	return nil
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
