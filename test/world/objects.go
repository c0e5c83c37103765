package world

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// settleWithin bounds how long an API server may take to serve what was just
// applied.
const settleWithin = 2 * time.Minute

// objectClient reaches objects of any kind as the administrator.
type objectClient struct {
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

func newObjectClient(c *ControlPlane) (*objectClient, error) {
	config := c.Admin.Config()
	config.WarningHandler = rest.NoWarnings{} // they are for people
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", c.Name, err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", c.Name, err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))
	return &objectClient{dynamic: objects, mapper: mapper}, nil
}

// resource returns where objects like this one are, and waits until the API
// server knows their kind.
func (o *objectClient) resource(ctx context.Context, object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	var mapping *meta.RESTMapping
	err := eventually(ctx, "the API server knows "+kind.String(), func(context.Context) (err error) {
		mapping, err = o.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			o.mapper.Reset()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return o.dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
	}
	return o.dynamic.Resource(mapping.Resource), nil
}

// settled waits until the object has the condition.
func (c *ControlPlane) settled(ctx context.Context, object *unstructured.Unstructured, condition string) error {
	api, err := newObjectClient(c)
	if err != nil {
		return err
	}
	resource, err := api.resource(ctx, object)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s %s is %s", object.GetKind(), object.GetName(), condition)
	return eventually(ctx, what, func(ctx context.Context) error {
		now, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
		for _, each := range conditions {
			if is, ok := each.(map[string]any); ok && is["type"] == condition {
				if is["status"] == "True" {
					return nil
				}
				return fmt.Errorf("it is %v: %v", is["reason"], is["message"])
			}
		}
		return errors.New("it has no such condition yet")
	})
}

// eventually asks until the answer is nil, for at most settleWithin. The last
// answer is in the error.
func eventually(ctx context.Context, what string, question func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for {
		err := question(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, errors.Join(ctx.Err(), err))
		case <-time.After(readyEvery):
		}
	}
}
