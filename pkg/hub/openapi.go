package hub

import (
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/spec3"
)

// declarePatch adds a PATCH operation to every path that has a POST and no
// PATCH. The server answers it with 405, as it did before: it is there for
// kubectl, which looks for the fieldValidation parameter on the PATCH of a kind
// to learn whether the server validates fields, and else falls back to listing
// CustomResourceDefinitions, which ordinary users may not.
func declarePatch(doc *spec3.OpenAPI) (*spec3.OpenAPI, error) {
	if doc.Paths == nil {
		return doc, nil
	}
	for _, path := range doc.Paths.Paths {
		if path == nil || path.Post == nil || path.Patch != nil {
			continue
		}
		path.Patch = &spec3.Operation{
			OperationProps: spec3.OperationProps{
				Description: "Not supported: the resource can only be created.",
				Parameters:  slices.Concat(path.Post.Parameters, path.Parameters),
				Responses:   &spec3.Responses{},
			},
		}
		path.Patch.Extensions = maps.Clone(path.Post.Extensions)
	}
	return doc, nil
}
