package peers

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// EndpointOptions say whose EndpointSlices name the peers.
type EndpointOptions struct {
	Client kubernetes.Interface
	// Namespace and Service are those of the hub's own Service.
	Namespace, Service string
	// Port is the direct door's, for slices that have no port named https.
	Port int
	// Self is this replica, which isn't its own peer. What isn't known is empty.
	Self Self
}

// Self is how EndpointSlices would name this replica.
type Self struct{ PodName, PodUID, IP string }

// Endpoints returns a Source of what is behind the Service, ready or not: a new
// replica becomes ready by what its peers tell it. One that is on its way out is
// left alone.
func Endpoints(o EndpointOptions) Source {
	return func(ctx context.Context, set func([]string)) error {
		factory := informers.NewSharedInformerFactoryWithOptions(o.Client, 0, informers.WithNamespace(o.Namespace),
			informers.WithTweakListOptions(func(list *metav1.ListOptions) {
				list.LabelSelector = discoveryv1.LabelServiceName + "=" + o.Service
			}))
		endpoints := factory.Discovery().V1().EndpointSlices()
		read := func(any) {
			if all, err := endpoints.Lister().List(labels.Everything()); err == nil {
				set(o.urls(all))
			}
		}
		if _, err := endpoints.Informer().AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: read, UpdateFunc: func(_, now any) { read(now) }, DeleteFunc: read,
		}); err != nil {
			return fmt.Errorf("watch the EndpointSlices of Service %s: %w", o.Service, err)
		}
		factory.Start(ctx.Done())
		<-ctx.Done()
		factory.Shutdown()
		return nil
	}
}

// urls are the peers in the slices. A pod that has several addresses is one
// peer, by the first of them.
func (o EndpointOptions) urls(all []*discoveryv1.EndpointSlice) []string {
	all = slices.SortedFunc(slices.Values(all), func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Or(cmp.Compare(a.AddressType, b.AddressType), cmp.Compare(a.Name, b.Name))
	})
	seen := map[string]bool{}
	var urls []string
	for _, slice := range all {
		if slice.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		port := o.port(slice)
		for _, e := range slice.Endpoints {
			if len(e.Addresses) == 0 || ptr.Deref(e.Conditions.Terminating, false) || o.isSelf(e) {
				continue
			}
			pod := e.Addresses[0]
			if e.TargetRef != nil && e.TargetRef.UID != "" {
				pod = string(e.TargetRef.UID)
			}
			if !seen[pod] {
				seen[pod] = true
				urls = append(urls, "https://"+net.JoinHostPort(e.Addresses[0], strconv.Itoa(port)))
			}
		}
	}
	slices.Sort(urls)
	return urls
}

func (o EndpointOptions) port(slice *discoveryv1.EndpointSlice) int {
	for _, p := range slice.Ports {
		if ptr.Deref(p.Name, "") == "https" && p.Port != nil {
			return int(*p.Port)
		}
	}
	return o.Port
}

func (o EndpointOptions) isSelf(e discoveryv1.Endpoint) bool {
	if o.Self.IP != "" && slices.Contains(e.Addresses, o.Self.IP) {
		return true
	}
	ref := e.TargetRef
	return ref != nil && ref.Kind == "Pod" &&
		((o.Self.PodUID != "" && string(ref.UID) == o.Self.PodUID) || (o.Self.PodName != "" && ref.Name == o.Self.PodName))
}
