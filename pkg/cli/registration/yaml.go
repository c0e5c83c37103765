package registration

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Manifest returns an object as it's applied: without the empty parts
// that its Go type has and its author doesn't set.
func Manifest(object runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert %T to a manifest: %w", object, err)
	}
	unstructured.RemoveNestedField(content, "status")
	if spec, _, _ := unstructured.NestedMap(content, "spec"); len(spec) == 0 {
		unstructured.RemoveNestedField(content, "spec")
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}

// YAML returns objects as a stream of manifests.
func YAML(objects ...runtime.Object) ([]byte, error) {
	var out bytes.Buffer
	for i, object := range objects {
		manifest, err := Manifest(object)
		if err != nil {
			return nil, err
		}
		document, err := yaml.Marshal(manifest.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", manifest.GetKind(), err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(document)
	}
	return out.Bytes(), nil
}
