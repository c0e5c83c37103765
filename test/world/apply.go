package world

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Apply applies manifests server-side as the administrator, in their order. A
// manifest may hold several documents. A kind that the API server doesn't know
// yet is waited for, so that CRDs and their objects can come in one call.
func (c *ControlPlane) Apply(ctx context.Context, manifests ...[]byte) error {
	var objects []*unstructured.Unstructured
	for _, manifest := range manifests {
		parsed, err := parse(manifest)
		if err != nil {
			return err
		}
		objects = append(objects, parsed...)
	}
	return c.apply(ctx, objects...)
}

func (c *ControlPlane) apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	api, err := newObjectClient(c)
	if err != nil {
		return err
	}
	for _, object := range objects {
		resource, err := api.resource(ctx, object)
		if err == nil {
			_, err = resource.Apply(ctx, object.GetName(), object,
				metav1.ApplyOptions{FieldManager: "cellcast-world", Force: true})
		}
		if err != nil {
			return fmt.Errorf("applying %s %s on %s: %w", object.GetKind(), object.GetName(), c.Name, err)
		}
	}
	return nil
}

// parse reads the documents of a manifest.
func parse(manifest []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading a manifest: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, fmt.Errorf("reading a manifest: %w", err)
		}
		if len(object.Object) > 0 { // else it was a comment
			objects = append(objects, object)
		}
	}
}

// read returns the objects of every file that the patterns match; a pattern
// that matches none is an error.
func read(patterns ...string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("no manifest at %s", pattern)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading a manifest: %w", err)
			}
			parsed, err := parse(content)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			objects = append(objects, parsed...)
		}
	}
	return objects, nil
}
