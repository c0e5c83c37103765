package rehearsal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// Row is a row, and the file and document that it's from.
type Row[T any] struct {
	Object *T
	From   string
}

func (r Row[T]) name() string {
	object, ok := any(r.Object).(metav1.Object)
	if !ok {
		return ""
	}
	return object.GetName()
}

// ReadPolicies reads policies as whoever writes them does: a field that isn't
// known, or comes twice, is an error. Skipped names each document of another
// kind. The error is a *Problems.
func ReadPolicies(files []File) (rows []Row[registry.PlacementPolicy], skipped []string, err error) {
	return read[registry.PlacementPolicy](files, "PlacementPolicy", true)
}

// ReadCells reads cells as an API server prints them, which may be a newer one:
// a field that isn't known is passed over.
func ReadCells(files []File) (rows []Row[registry.Cluster], skipped []string, err error) {
	return read[registry.Cluster](files, "Cluster", false)
}

func read[T any](files []File, kind string, strict bool) ([]Row[T], []string, error) {
	scheme := runtime.NewScheme()
	if err := registry.AddToScheme(scheme); err != nil {
		return nil, nil, err
	}
	scheme.AddKnownTypes(schema.GroupVersion{Version: "v1"}, &metav1.List{})
	r := &reader[T]{kind: kind, decoder: json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
		json.SerializerOptions{Yaml: true, Strict: strict})}
	for _, f := range files {
		r.file(f)
	}
	return r.rows, r.skipped, r.problems.err()
}

// reader collects rows and problems.
type reader[T any] struct {
	kind     string
	decoder  runtime.Decoder
	rows     []Row[T]
	skipped  []string
	problems Problems
}

// file reads each document of a file.
func (r *reader[T]) file(f File) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(f.Content)))
	for n := 1; ; n++ {
		from := fmt.Sprintf("%s, document %d", f.Name, n)
		document, err := documents.Read()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			r.problems.add("%s: %v", from, err)
			return
		}
		r.document(document, from)
	}
}

func (r *reader[T]) document(document []byte, from string) {
	if content, err := yaml.YAMLToJSON(document); err == nil && string(content) == "null" {
		return // nothing but comments
	}
	object, kind, err := r.decoder.Decode(document, nil, nil)
	strict, isStrict := runtime.AsStrictDecodingError(err)
	switch {
	case kind != nil && !r.wants(*kind):
		r.skipped = append(r.skipped, from+", which is "+describe(*kind))
	case isStrict:
		for _, wrong := range strict.Errors() {
			r.problems.add("%s: %v", from, wrong)
		}
	case runtime.IsMissingVersion(err):
		r.problems.add("%s: is a %s without an apiVersion: write %s", from, r.kind, registry.SchemeGroupVersion)
	case runtime.IsNotRegisteredError(err):
		r.problems.add("%s: is a %s of %s, which this version doesn't know: it knows %s", from, r.kind, kind.GroupVersion(), registry.SchemeGroupVersion)
	case err != nil:
		r.problems.add("%s: %v", from, err)
	default:
		r.add(object, from)
	}
}

// wants reports whether a document is to be read. One of ours that lacks its
// apiVersion, or has one that isn't known, is: to skip it would be to test
// without it.
func (r *reader[T]) wants(kind schema.GroupVersionKind) bool {
	switch kind.Kind {
	case r.kind, r.kind + "List":
		return kind.Group == registry.GroupName || kind.Group == ""
	default:
		return kind == schema.GroupVersionKind{Version: "v1", Kind: "List"}
	}
}

func describe(kind schema.GroupVersionKind) string {
	if kind.Kind == "" {
		return "of no kind"
	}
	return fmt.Sprintf("a %s of %s", kind.Kind, kind.GroupVersion())
}

// add adds the rows of a document, those of a list one by one.
func (r *reader[T]) add(object runtime.Object, from string) {
	switch o := object.(type) {
	case *metav1.List:
		for i := range o.Items {
			r.document(o.Items[i].Raw, itemOf(from, i))
		}
	case *registry.PlacementPolicyList:
		for i := range o.Items {
			r.add(&o.Items[i], itemOf(from, i))
		}
	case *registry.ClusterList:
		for i := range o.Items {
			r.add(&o.Items[i], itemOf(from, i))
		}
	default:
		row, ok := any(object).(*T)
		if !ok {
			r.problems.add("%s: is no %s", from, r.kind)
			return
		}
		r.rows = append(r.rows, Row[T]{row, from})
	}
}

func itemOf(from string, i int) string { return fmt.Sprintf("%s, items[%d]", from, i) }
