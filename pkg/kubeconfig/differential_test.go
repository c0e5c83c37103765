package kubeconfig

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// sameAsLoader fails where client-go's loader reads something else from a file than
// we did: another server, CA or token, or anything beside them.
func sameAsLoader(t *testing.T, data []byte, k Kubeconfig) {
	t.Helper()
	loaded, err := clientcmd.Load(data)
	if err != nil {
		t.Fatalf("taken, though client-go refuses it: %v\n%s", err, data)
	}
	names := loaded.Contexts[loaded.CurrentContext]
	if names == nil || len(loaded.Clusters) != 1 || len(loaded.AuthInfos) != 1 || loaded.Clusters[names.Cluster] == nil {
		t.Fatalf("client-go finds no cluster by the context\n%s", data)
	}
	server := loaded.Clusters[names.Cluster].Server
	if got, want := canonical(t, server), canonical(t, k.Server); got != want {
		t.Fatalf("client-go goes to %s, we to %s\n%s", got, want, data)
	}

	want := api.NewConfig()
	want.CurrentContext = loaded.CurrentContext
	want.Clusters[names.Cluster] = api.NewCluster()
	want.Clusters[names.Cluster].Server = server
	want.Clusters[names.Cluster].CertificateAuthorityData = k.CAData
	want.AuthInfos[names.AuthInfo] = api.NewAuthInfo()
	want.AuthInfos[names.AuthInfo].Token = k.Token.Reveal()
	want.Contexts[loaded.CurrentContext] = api.NewContext()
	want.Contexts[loaded.CurrentContext].Cluster = names.Cluster
	want.Contexts[loaded.CurrentContext].AuthInfo = names.AuthInfo
	if diff := cmp.Diff(want, loaded, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("client-go reads something else (-ours +its):\n%s\n%s", diff, data)
	}

	built, err := clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig()
	if err != nil {
		t.Fatalf("client-go can't use it: %v\n%s", err, data)
	}
	wantBuilt := rest.Config{Host: built.Host, BearerToken: k.Token.Reveal(), TLSClientConfig: rest.TLSClientConfig{CAData: k.CAData}}
	if got, want := canonical(t, built.Host), canonical(t, k.Server); got != want {
		t.Fatalf("client-go builds a client for %s, we for %s\n%s", got, want, data)
	}
	// The structs have functions in them, which nothing may have set either.
	if got, want := fmt.Sprintf("%#v", *built), fmt.Sprintf("%#v", wantBuilt); got != want || built.BearerToken != wantBuilt.BearerToken || !bytes.Equal(built.CAData, wantBuilt.CAData) {
		t.Fatalf("client-go builds\n%s\nwe\n%s\n%s", got, want, data)
	}
}

// canonical is a URL as client-go's own client takes it, with what two spellings of
// one address may differ in evened out.
func canonical(t *testing.T, server string) string {
	t.Helper()
	u, _, err := rest.DefaultServerURL(server, "/api", api.SchemeGroupVersion, true)
	if err != nil {
		t.Fatalf("client-go can't read a server that we take: %v", err)
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	rest := url.URL{Scheme: u.Scheme, User: u.User, Path: strings.TrimSuffix(u.Path, "/"), RawQuery: u.RawQuery, Fragment: u.Fragment}
	return fmt.Sprintf("%s at %s port %s", &rest, canonicalHost(u.Hostname()), port)
}

func TestClientGoReadsTheSameFromTheCorpus(t *testing.T) {
	taken := 0
	for _, f := range corpus(t) {
		if k, err := Parse(f.data); err == nil {
			taken++
			t.Run(f.name, func(t *testing.T) { sameAsLoader(t, f.data, k) })
		}
	}
	if taken < 40 { // the good ones, and those that are refused for their address alone
		t.Errorf("only %d files were compared", taken)
	}
}

func TestClientGoReadsTheSameFromMutations(t *testing.T) {
	compared := 0
	for _, data := range mutations(t) {
		if k, err := Parse(data); err == nil {
			compared++
			sameAsLoader(t, data, k)
		}
	}
	t.Logf("%d mutations were taken and compared", compared)
	if compared < 1000 {
		t.Errorf("only %d mutations were taken", compared)
	}
}
