package peers

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

func endpoint(pod, address string, conditions discoveryv1.EndpointConditions) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses: []string{address}, Conditions: conditions,
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod, UID: types.UID("uid-" + pod)},
	}
}

func slice(name string, kind discoveryv1.AddressType, port *discoveryv1.EndpointPort, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "cellcast-system", Name: name, Labels: map[string]string{"kubernetes.io/service-name": "cellcast-hub"}},
		AddressType: kind, Endpoints: endpoints,
	}
	if port != nil {
		s.Ports = []discoveryv1.EndpointPort{{Name: ptr.To("mirror"), Port: ptr.To[int32](9443)}, *port}
	}
	return s
}

func TestEndpointsArePeers(t *testing.T) {
	ready := discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true)}
	unready := discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: ptr.To(false)}
	ending := discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: ptr.To(true), Terminating: ptr.To(true)}
	https := &discoveryv1.EndpointPort{Name: ptr.To("https"), Port: ptr.To[int32](7443)}
	a, b, c := endpoint("a", "10.0.0.1", ready), endpoint("b", "10.0.0.2", unready), endpoint("c", "10.0.0.3", ending)

	tests := map[string]struct {
		self   Self
		slices []*discoveryv1.EndpointSlice
		want   []string
	}{
		"ready or not, but none that ends":    {Self{}, []*discoveryv1.EndpointSlice{slice("1", "IPv4", https, a, b, c)}, []string{"https://10.0.0.1:7443", "https://10.0.0.2:7443"}},
		"the direct port where none is named": {Self{}, []*discoveryv1.EndpointSlice{slice("1", "IPv4", nil, a)}, []string{"https://10.0.0.1:8443"}},
		"not itself, by UID":                  {Self{PodUID: "uid-a"}, []*discoveryv1.EndpointSlice{slice("1", "IPv4", https, a, b)}, []string{"https://10.0.0.2:7443"}},
		"not itself, by name":                 {Self{PodName: "a"}, []*discoveryv1.EndpointSlice{slice("1", "IPv4", https, a, b)}, []string{"https://10.0.0.2:7443"}},
		"not itself, by address":              {Self{IP: "10.0.0.1"}, []*discoveryv1.EndpointSlice{slice("1", "IPv4", https, a, b)}, []string{"https://10.0.0.2:7443"}},
		"a pod of two addresses once": {Self{}, []*discoveryv1.EndpointSlice{
			slice("6", "IPv6", https, endpoint("a", "fd00::1", ready)), slice("4", "IPv4", https, a)}, []string{"https://10.0.0.1:7443"}},
		"IPv6":     {Self{}, []*discoveryv1.EndpointSlice{slice("6", "IPv6", https, endpoint("a", "fd00::1", ready))}, []string{"https://[fd00::1]:7443"}},
		"no names": {Self{}, []*discoveryv1.EndpointSlice{slice("1", "FQDN", https, endpoint("a", "evil.example.com", ready))}, nil},
		"of an endpoint without a pod": {Self{PodName: "a"}, []*discoveryv1.EndpointSlice{
			slice("1", "IPv4", https, discoveryv1.Endpoint{Addresses: []string{"10.0.0.9"}})}, []string{"https://10.0.0.9:7443"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, EndpointOptions{Port: 8443, Self: tc.self}.urls(tc.slices)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEndpointsAreFollowed(t *testing.T) {
	own := slice("1", "IPv4", nil, endpoint("a", "10.0.0.1", discoveryv1.EndpointConditions{}))
	other := slice("2", "IPv4", nil, endpoint("x", "10.9.9.9", discoveryv1.EndpointConditions{}))
	other.Labels["kubernetes.io/service-name"] = "another"
	api := fake.NewClientset(own, other)
	ctx, cancel := context.WithCancel(t.Context())
	sets, ended := make(chan []string, 10), make(chan error, 1)
	go func() {
		ended <- Endpoints(EndpointOptions{Client: api, Namespace: "cellcast-system", Service: "cellcast-hub", Port: 8443})(ctx, func(urls []string) { sets <- urls })
	}()
	next := func(want ...string) {
		t.Helper()
		select {
		case got := <-sets:
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("nothing was heard")
		}
	}
	next("https://10.0.0.1:8443")
	slices := api.DiscoveryV1().EndpointSlices("cellcast-system")
	own = own.DeepCopy()
	own.Endpoints = append(own.Endpoints, endpoint("b", "10.0.0.2", discoveryv1.EndpointConditions{}))
	if _, err := slices.Update(ctx, own, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	next("https://10.0.0.1:8443", "https://10.0.0.2:8443")
	if err := slices.Delete(ctx, "1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	next()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestURLsOfPeers(t *testing.T) {
	for url, want := range map[string]string{
		"https://127.0.0.1:8443":       "",
		"https://[::1]:8443":           "",
		"http://127.0.0.1:8443":        "isn't https://host:port",
		"https://127.0.0.1":            "isn't https://host:port",
		"https://a:secret@host:8443":   "isn't https://host:port",
		"https://127.0.0.1:8443/relay": "has more than https://host:port",
		"https://127.0.0.1:8443?x=1":   "has more than https://host:port",
		"://":                          "it's no URL",
	} {
		err := CheckURL(url)
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", url, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error quotes the password: %v", url, err)
		}
	}
}
