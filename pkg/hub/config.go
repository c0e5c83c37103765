// Package hub puts the hub together: options become a Config, a Config becomes
// a Server, a Server runs. api.go has the map of what it serves; reading a
// request goes from there into pkg/rest.
package hub

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilcompatibility "k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes"

	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/generated/openapi"

	genericopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
)

// maxRequestBytes bounds the body of a question. A placement with every field
// at its limit is far smaller.
const maxRequestBytes = 256 << 10

// Config is all that a hub is made from.
type Config struct {
	Settings
	// Generic is the configuration of the API server that serves the hub's API.
	Generic *genericapiserver.RecommendedConfig
	// Pod is the pod that the hub runs in.
	Pod Pod
	// HubClient is the hub's own access to its cluster.
	HubClient kubernetes.Interface
	// Rows is the same for the rows that cellcast keeps there.
	Rows versioned.Interface

	scheme *runtime.Scheme
	codecs serializer.CodecFactory
}

// NewConfig returns a Config with the API described and nothing connected.
func NewConfig(settings Settings) *Config {
	scheme := newScheme()
	codecs := serializer.NewCodecFactory(scheme)
	generic := genericapiserver.NewRecommendedConfig(codecs)
	generic.EffectiveVersion = utilcompatibility.DefaultBuildEffectiveVersion()
	generic.MaxRequestBodyBytes = maxRequestBytes

	namer := genericopenapi.NewDefinitionNamer(scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIConfig.Info.Title = "cellcast"
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config.Info.Title = "cellcast"
	generic.OpenAPIV3Config.PostProcessSpec = declarePatch

	return &Config{Settings: settings, Generic: generic, scheme: scheme, codecs: codecs}
}

// ConnectHubCluster makes the client of the hub's own cluster, from the
// configuration that CoreAPI options put into Generic. Its own rate limit is
// off: the API server's priority and fairness is the limit.
func (c *Config) ConnectHubCluster() error {
	c.Generic.ClientConfig.QPS = -1
	client, err := kubernetes.NewForConfig(c.Generic.ClientConfig)
	if err != nil {
		return fmt.Errorf("client of the hub's cluster: %w", err)
	}
	c.HubClient = client
	if c.Rows, err = versioned.NewForConfig(c.Generic.ClientConfig); err != nil {
		return fmt.Errorf("client of the hub's rows: %w", err)
	}
	return nil
}

// Completed is a Config that New accepts.
type Completed struct{ *Config }

// Complete fills in what follows from the rest.
func (c *Config) Complete() Completed {
	c.Generic.BuildHandlerChainFunc = buildHandlerChain
	// The server is unready at once and serves on for the delay, because whoever
	// routes to it learns of it later; then it answers 429 with Retry-After to what
	// still comes, and finishes what it has.
	c.Generic.ShutdownDelayDuration = c.DrainDelay
	c.Generic.ShutdownSendRetryAfter = true
	return Completed{c}
}
