package app

import (
	"strings"
	"testing"
	"time"
)

func TestOptionsSayWhatToSet(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		want   string // empty means valid
	}{
		"the defaults with a cell and a hub are enough": {func(*Options) {}, ""},
		"a hub behind a path":                           {func(o *Options) { o.Hub = "https://gateway.example.com/cellcast" }, ""},
		"a cell with dots":                              {func(o *Options) { o.Cell = "eu.oslo-1" }, ""},
		"no probes":                                     {func(o *Options) { o.HealthBindAddress = "0" }, ""},
		"no lease needs no namespace":                   {func(o *Options) { o.LeaderElect = false; o.Namespace = "" }, ""},
		"a missing cell": {func(o *Options) { o.Cell = "" },
			"--cell is missing: set it to the name of the Cluster on the hub"},
		"a cell that no Cluster can be": {func(o *Options) { o.Cell = "../oslo" },
			`--cell "../oslo" can't be the name of a Cluster: set at most 63 lower-case letters, digits, '-' and '.'`},
		"a cell whose name is too long": {func(o *Options) { o.Cell = strings.Repeat("o", 64) },
			`--cell "` + strings.Repeat("o", 64) + `" can't be the name of a Cluster: set at most 63 lower-case letters, digits, '-' and '.'`},
		"a missing hub": {func(o *Options) { o.Hub = "" },
			"--hub is missing: set it to the https URL of the hub's direct door, such as https://cellcast.example.com:8443"},
		"a hub without TLS":                         {func(o *Options) { o.Hub = "http://hub.example.com" }, badHub},
		"a hub without a scheme":                    {func(o *Options) { o.Hub = "hub.example.com:8443" }, badHub},
		"a hub without a host":                      {func(o *Options) { o.Hub = "https://:8443" }, badHub},
		"a hub with userinfo, which isn't repeated": {func(o *Options) { o.Hub = "https://me:swordfish@hub.example.com" }, badHub},
		"a hub with a query":                        {func(o *Options) { o.Hub = "https://hub.example.com?a=b" }, badHub},
		"an empty token file": {func(o *Options) { o.TokenFile = "" },
			"--token-file is empty: set it to the file of a projected ServiceAccount token for the hub's audience"},
		"an interval that is too short": {func(o *Options) { o.Interval = 100 * time.Millisecond },
			"--interval 100ms is out of bounds: set 1s to 10m; 30s suits the hub's usual staleness window of 90s"},
		"an interval that is too long": {func(o *Options) { o.Interval = time.Hour },
			"--interval 1h0m0s is out of bounds: set 1s to 10m; 30s suits the hub's usual staleness window of 90s"},
		"a lease in no namespace": {func(o *Options) { o.Namespace = "" },
			`--namespace "" can't be the name of a namespace: set the one that the agent runs in`},
		"an address without a port": {func(o *Options) { o.HealthBindAddress = "localhost" },
			`--health-bind-address "localhost" is no address: set one such as :8081, or "0" to serve neither probes nor metrics`},
		"namespaces of revocable credentials": {func(o *Options) { o.RevocableNamespaces = []string{"ci", "cd"} }, ""},
		"a namespace that none can be": {func(o *Options) { o.RevocableNamespaces = []string{"ci", "*"} },
			`--revocable-namespaces has "*", which can't be the name of a namespace: set names with commas between them`},
		"more namespaces than a report may name": {func(o *Options) { o.RevocableNamespaces = make([]string, 65) },
			"--revocable-namespaces has 65 entries: name at most 64"},
		"everything at once": {func(o *Options) { o.Cell = ""; o.TokenFile = "" },
			"--cell is missing: set it to the name of the Cluster on the hub\n--token-file is empty: set it to the file of a projected ServiceAccount token for the hub's audience"},
	} {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			o.Cell, o.Hub = "oslo", "https://hub.example.com:8443"
			test.change(o)
			got := ""
			if err := o.Validate(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("error %q, want %q", got, test.want)
			}
		})
	}
}

const badHub = "--hub must be an https URL with a host and without userinfo, query or fragment, such as https://cellcast.example.com:8443"
