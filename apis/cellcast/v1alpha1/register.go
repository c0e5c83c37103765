package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the questions that cellcast answers.
const GroupName = "cellcast.io"

var (
	// SchemeGroupVersion is the group and version of this package.
	SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// SchemeBuilder collects the functions that add this package to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds this package's types to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource returns the GroupResource of a resource of this group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, types()...)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

// AddInternalToScheme registers the same types as the internal version: they
// are stored nowhere, so there is one shape and nothing to convert.
func AddInternalToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}, types()...)
	return nil
}

func types() []runtime.Object {
	return []runtime.Object{
		&Placement{},
		&Cell{}, &CellList{},
		&CellCapacity{},
		&CellToken{},
		&CellRevocation{},
		&ClusterTarget{}, &TargetProbe{}, &TargetToken{},
		&LaunchTarget{}, &LaunchTargetList{},
	}
}
