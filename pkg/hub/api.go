package hub

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/rest/launchtarget"
)

// questions is what the hub's API answers.
type questions struct {
	placements   rest.Storage
	cells        rest.Storage
	cellCapacity rest.Storage
	cellToken    rest.Storage
	revocation   rest.Storage

	clusterTargets rest.Storage
	targetProbe    rest.Storage
	targetToken    rest.Storage
	launchTargets  rest.Storage
}

// resources is the whole surface of cellcast.io/v1alpha1.
func (q questions) resources() map[string]rest.Storage {
	return map[string]rest.Storage{
		"placements":       q.placements,
		"cells":            q.cells,
		"cells/capacity":   q.cellCapacity,
		"cells/token":      q.cellToken,
		"cells/revocation": q.revocation,

		"clustertargets":       q.clusterTargets,
		"clustertargets/probe": q.targetProbe,
		"clustertargets/token": q.targetToken,
		"launchtargets":        q.launchTargets,
	}
}

// install serves the questions.
func (q questions) install(server *genericapiserver.GenericAPIServer, c *Config) error {
	group := genericapiserver.NewDefaultAPIGroupInfo(cellcastv1alpha1.GroupName, c.scheme, metav1.ParameterCodec, c.codecs)
	group.VersionedResourcesStorageMap[cellcastv1alpha1.SchemeGroupVersion.Version] = q.resources()
	return server.InstallAPIGroup(&group)
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(cellcastv1alpha1.AddToScheme(scheme))
	utilruntime.Must(cellcastv1alpha1.AddInternalToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(cellcastv1alpha1.SchemeGroupVersion))
	utilruntime.Must(scheme.AddFieldLabelConversionFunc(cellcastv1alpha1.SchemeGroupVersion.WithKind("LaunchTarget"), launchtarget.ConvertFieldLabel))
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned,
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme
}

// buildHandlerChain is the API server's own chain, with strict decoding ahead
// of the API, authentication in the trace of each request, and an end of the
// connections when the server is leaving.
func buildHandlerChain(api http.Handler, c *genericapiserver.Config) http.Handler {
	chain := genericapiserver.DefaultBuildHandlerChain(withAuthenticateSpan(withStrictDecoding(api)), c)
	return withFarewell(withNote(chain), c.ShutdownInitiatedNotify())
}
