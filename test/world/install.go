package world

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Install puts onto the hub what cellcast-hub needs there: the CRDs, its
// namespace, its ServiceAccount and its RBAC.
func (h *Hub) Install(ctx context.Context) error {
	crds, err := read(h.world.assets.artifact("crds", "*.yaml"))
	if err != nil {
		return err
	}
	rbac, err := read(h.world.assets.artifact("rbac", "hub.yaml"))
	if err != nil {
		return err
	}
	if err := h.apply(ctx, append(crds, rbac...)...); err != nil {
		return err
	}
	for _, crd := range crds {
		if err := h.settled(ctx, crd, "Established"); err != nil {
			return err
		}
	}
	return nil
}

// register makes the hub's API server forward cellcast.io to the server, and
// ask its webhooks. It returns once both work.
func (h *Hub) register(ctx context.Context, s *Server) error {
	service := map[string]any{"name": HubServiceAccount, "namespace": Namespace, "port": int64(s.port)}
	bundle := base64.StdEncoding.EncodeToString(h.ServerCABundle)
	api := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1",
		"kind":       "APIService",
		"metadata":   map[string]any{"name": "v1alpha1.cellcast.io"},
		"spec": map[string]any{
			"group":   "cellcast.io",
			"version": "v1alpha1",
			// Below the 1000 that CRDs get, so that a resource which both
			// groups have means the CRD's.
			"groupPriorityMinimum": int64(500),
			"versionPriority":      int64(15),
			"caBundle":             bundle,
			"service":              service,
		},
	}}
	// The server runs outside the cluster, so its Service is a name alone.
	name := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Service",
		"metadata":   map[string]any{"name": HubServiceAccount, "namespace": Namespace},
		"spec":       map[string]any{"type": "ExternalName", "externalName": "localhost"},
	}}
	webhooks, err := h.webhooks(service, bundle)
	if err != nil {
		return err
	}
	if err := h.apply(ctx, append(webhooks, name, api)...); err != nil {
		return err
	}
	if err := h.settled(ctx, api, "Available"); err != nil {
		return err
	}
	return h.guarded(ctx)
}

// webhooks returns the webhook configurations of the artifacts, pointed at the
// server.
func (h *Hub) webhooks(service map[string]any, bundle string) ([]*unstructured.Unstructured, error) {
	file := h.world.assets.artifact("webhook", "*.yaml")
	configurations, err := read(file)
	if err != nil {
		return nil, err
	}
	for _, configuration := range configurations {
		webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, webhook := range webhooks {
			if err := point(webhook, service, bundle); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
		if err := unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks"); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return configurations, nil
}

// point makes a webhook call the service, at the path that it has.
func point(webhook any, service map[string]any, bundle string) error {
	entry, ok := webhook.(map[string]any)
	if !ok {
		return errors.New("a webhook isn't an object")
	}
	path, found, err := unstructured.NestedString(entry, "clientConfig", "service", "path")
	if err != nil || !found {
		return errors.New("a webhook has no clientConfig.service.path")
	}
	target := maps.Clone(service)
	target["path"] = path
	entry["clientConfig"] = map[string]any{"service": target, "caBundle": bundle}
	return nil
}

// guarded waits until the API server asks the webhooks, which it comes to know
// some time after they are applied: it is offered a row that the schema admits
// and the webhook refuses. Nothing is stored.
func (h *Hub) guarded(ctx context.Context) error {
	row := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "registry.cellcast.io/v1alpha1",
		"kind":       "Cluster",
		"metadata":   map[string]any{"name": "cellcast-world"},
		"spec": map[string]any{
			"endpoint": "https://cell.invalid",
			"caBundle": base64.StdEncoding.EncodeToString([]byte("no certificate")),
			"trust":    map[string]any{"audience": "cellcast:cell:cellcast-world"},
		},
	}}
	api, err := newObjectClient(h.ControlPlane)
	if err != nil {
		return err
	}
	clusters, err := api.resource(ctx, row)
	if err != nil {
		return err
	}
	return eventually(ctx, "the API server asks the webhooks", func(ctx context.Context) error {
		_, err := clusters.Create(ctx, row, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("a Cluster whose caBundle is no certificate was admitted")
		}
		if !strings.Contains(err.Error(), "denied the request") {
			return err
		}
		return nil
	})
}
