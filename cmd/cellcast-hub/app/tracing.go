package app

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"

	"cellcast.io/cellcast/pkg/hub"
)

// applyTracing sends spans where the file of --tracing-config-file says. It does
// what TracingOptions.ApplyTo does but for the name: there every API server is
// "apiserver", the hub's own and those of the cells too, and nobody could tell
// whose span it is.
func applyTracing(o *genericoptions.TracingOptions, pod hub.Pod, g *genericapiserver.Config) error {
	if o.ConfigFile == "" {
		return nil
	}
	config, err := genericoptions.ReadTracingConfiguration(o.ConfigFile)
	if err != nil {
		return err
	}
	if wrong := tracingapi.ValidateTracingConfiguration(config, utilfeature.DefaultFeatureGate, nil); len(wrong) > 0 {
		return wrong.ToAggregate()
	}
	instance := pod.Name
	if instance == "" {
		instance = g.APIServerID
	}
	provider, err := tracing.NewProvider(context.Background(), config, nil, []resource.Option{
		resource.WithAttributes(attribute.String("service.name", "cellcast-hub"), attribute.String("service.instance.id", instance)),
	})
	if err != nil {
		return err
	}
	g.TracerProvider = brief{provider}
	return nil
}

// brief is a TracerProvider that doesn't hold up the end of a replica. What it
// hasn't sent of the last spans two seconds after the end is lost; a collector
// that is away would take ten of the seconds that the replica has.
type brief struct{ tracing.TracerProvider }

func (b brief) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return b.TracerProvider.Shutdown(ctx)
}
