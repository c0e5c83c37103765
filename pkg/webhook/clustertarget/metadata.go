package clustertarget

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// maxMetadata bounds the labels, annotations, finalizers and owner references of a
// row, all together, in bytes. Kubernetes would take 256 KiB of annotations, and as
// much of the rest as etcd has room for; each replica reads every row and keeps the
// labels. It's room for the copy that kubectl apply keeps of the largest spec, some
// 40 KiB, and for notes beside it.
const maxMetadata = 64 << 10

// metadata keeps rows small. One that is larger from before may stay, and shrink.
func (r rules) metadata(_ context.Context, c change) (field.ErrorList, error) {
	size := metadataSize(c.row)
	if size <= maxMetadata || c.old != nil && size <= metadataSize(c.old) {
		return nil, nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata"), fmt.Sprintf(
		"has %d bytes of labels, annotations, finalizers and owner references, and %d at most are taken, as every replica of the hub reads every target: "+
			"keep notes elsewhere (kubectl annotate clustertarget NAME KEY- removes one), and use kubectl apply --server-side, which keeps no copy of the row in it",
		size, maxMetadata))}, nil
}

func metadataSize(row *registry.ClusterTarget) int {
	size := 0
	for _, words := range []map[string]string{row.Labels, row.Annotations} {
		for key, value := range words {
			size += len(key) + len(value)
		}
	}
	for _, finalizer := range row.Finalizers {
		if finalizer != registry.TargetFinalizer { // which the hub must be able to add
			size += len(finalizer)
		}
	}
	for _, owner := range row.OwnerReferences {
		size += len(owner.APIVersion) + len(owner.Kind) + len(owner.Name) + len(owner.UID)
	}
	return size
}
