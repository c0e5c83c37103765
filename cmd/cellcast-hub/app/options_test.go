package app

import (
	"errors"
	"strings"
	"testing"
	"time"

	"cellcast.io/cellcast/pkg/hub"
)

func TestFlagsThatAreRefused(t *testing.T) {
	good := []string{"--external-url=https://cellcast.example.com:9443"}
	tests := map[string]struct {
		args []string
		want string
	}{
		"the defaults and a URL are taken": {},
		"a ceiling under ten minutes":      {[]string{"--token-max-ttl=9m59s"}, "--token-max-ttl is 9m59s"},
		"a ceiling of ten minutes":         {[]string{"--token-max-ttl=10m"}, ""},
		"no staleness window":              {[]string{"--staleness-window=0s"}, "--staleness-window"},
		"an external URL without https":    {[]string{"--external-url=http://cellcast.example.com"}, "--external-url"},
		"an external URL with userinfo":    {[]string{"--external-url=https://a:b@cellcast.example.com"}, "--external-url"},
		"no reporter audience":             {[]string{"--reporter-audience="}, "--reporter-audience"},
		"no ServiceAccount":                {[]string{"--service-account="}, "--service-account"},
		"a negative drain":                 {[]string{"--drain-delay=-1s"}, "--drain-delay is -1s"},
		"a negative shutdown":              {[]string{"--shutdown-timeout=-1s"}, "--shutdown-timeout is -1s"},
		"no drain at all":                  {[]string{"--drain-delay=0s", "--shutdown-timeout=0s"}, ""},
		"peers":                            {[]string{"--peers=https://127.0.0.1:1,https://127.0.0.1:2"}, ""},
		"a peer without TLS":               {[]string{"--peers=https://127.0.0.1:1,http://127.0.0.1:2"}, `--peers: "http://127.0.0.1:2" isn't https://host:port`},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			o := NewOptions()
			flags := o.Flags()
			all := flags.FlagSet("all")
			for _, set := range flags.FlagSets {
				if set != all {
					all.AddFlagSet(set)
				}
			}
			if err := all.Parse(append(good, tt.args...)); err != nil {
				t.Fatal(err)
			}
			err := errors.Join(o.Validate()...)
			if tt.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestDrainThatAPodHasNoTimeFor(t *testing.T) {
	for shutdown, want := range map[time.Duration]bool{15 * time.Second: false, 19 * time.Second: false, 20 * time.Second: true} {
		s := hub.DefaultSettings()
		s.ShutdownTimeout = shutdown
		if got := longDrain(s); got != want {
			t.Errorf("%s and %s: %v, want %v", s.DrainDelay, shutdown, got, want)
		}
	}
}
