package policy

import (
	"strings"
	"testing"
	"time"

	"cellcast.io/cellcast/pkg/refusal"
)

const m = time.Minute

func TestBounds(t *testing.T) {
	for name, test := range map[string]struct {
		env      string
		override TTL
		ceiling  time.Duration
		want     TTL
	}{
		"prod":                            {"prod", TTL{}, 60 * m, TTL{10 * m, 15 * m}},
		"production":                      {"production", TTL{}, 60 * m, TTL{10 * m, 15 * m}},
		"stage":                           {"stage", TTL{}, 60 * m, TTL{15 * m, 30 * m}},
		"staging":                         {"staging", TTL{}, 60 * m, TTL{15 * m, 30 * m}},
		"dev":                             {"dev", TTL{}, 60 * m, TTL{30 * m, 60 * m}},
		"development":                     {"development", TTL{}, 60 * m, TTL{30 * m, 60 * m}},
		"no label counts as production":   {"", TTL{}, 60 * m, TTL{10 * m, 15 * m}},
		"anything else as well":           {"Dev", TTL{}, 60 * m, TTL{10 * m, 15 * m}},
		"a policy may widen both":         {"prod", TTL{20 * m, 45 * m}, 60 * m, TTL{20 * m, 45 * m}},
		"a policy may narrow both":        {"dev", TTL{11 * m, 12 * m}, 60 * m, TTL{11 * m, 12 * m}},
		"a max alone keeps the default":   {"prod", TTL{Max: 45 * m}, 60 * m, TTL{10 * m, 45 * m}},
		"a max alone lowers the default":  {"dev", TTL{Max: 20 * m}, 60 * m, TTL{20 * m, 20 * m}},
		"a default alone keeps the max":   {"dev", TTL{Default: 40 * m}, 90 * m, TTL{40 * m, 60 * m}},
		"a default alone lifts the max":   {"prod", TTL{Default: 40 * m}, 60 * m, TTL{40 * m, 40 * m}},
		"the ceiling lowers the max":      {"dev", TTL{}, 45 * m, TTL{30 * m, 45 * m}},
		"and the default":                 {"dev", TTL{}, 20 * m, TTL{20 * m, 20 * m}},
		"and what a policy set":           {"prod", TTL{2 * 60 * m, 4 * 60 * m}, 60 * m, TTL{60 * m, 60 * m}},
		"a high ceiling widens nothing":   {"prod", TTL{}, 24 * 60 * m, TTL{10 * m, 15 * m}},
		"no ceiling permits nothing":      {"dev", TTL{}, 0, TTL{0, 0}},
		"a ceiling under the floor shows": {"dev", TTL{}, 5 * m, TTL{5 * m, 5 * m}},
	} {
		t.Run(name, func(t *testing.T) {
			rules := TTLRules{Cell: "eu-1", Env: test.env, Policy: &Policy{Name: "p", TokenTTL: test.override}, Ceiling: test.ceiling}
			if got := Bounds(rules); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	if got := Bounds(TTLRules{Env: "stage", Ceiling: 20 * m}); got != (TTL{15 * m, 20 * m}) {
		t.Errorf("without a policy: %v", got)
	}
}

func TestResolveTTL(t *testing.T) {
	stage := TTLRules{Cell: "eu-1", Env: "stage", Policy: &Policy{Name: "shop"}, Ceiling: 60 * m}
	withOverride := func(ttl TTL) TTLRules {
		r := stage
		r.Policy = &Policy{Name: "shop", TokenTTL: ttl}
		return r
	}
	withCeiling := func(ceiling time.Duration) TTLRules {
		r := stage
		r.Ceiling = ceiling
		return r
	}
	const under = `, and Kubernetes issues no token for less than 10m0s; ask the platform team to raise the policy's tokenTTL.max or the hub's --token-max-ttl`
	for name, test := range map[string]struct {
		asked time.Duration
		rules TTLRules
		want  time.Duration
		// where it is refused:
		code           refusal.Code
		field, message string
	}{
		"nothing asked is the default":          {asked: 0, rules: stage, want: 15 * m},
		"less is given":                         {asked: 12 * m, rules: stage, want: 12 * m},
		"more than the default is given":        {asked: 29 * m, rules: stage, want: 29 * m},
		"the most is given":                     {asked: 30 * m, rules: stage, want: 30 * m},
		"under the floor is raised to it":       {asked: 5 * m, rules: stage, want: 10 * m},
		"a nanosecond is raised to the floor":   {asked: 1, rules: stage, want: 10 * m},
		"the floor is given":                    {asked: 10 * m, rules: stage, want: 10 * m},
		"parts of a second are left out":        {asked: 12*m + 1999*time.Millisecond, rules: stage, want: 12*m + time.Second},
		"a ceiling at the floor gives it":       {asked: 0, rules: withCeiling(10 * m), want: 10 * m},
		"a default under the floor is raised":   {asked: 0, rules: withOverride(TTL{Default: 5 * m}), want: 10 * m},
		"a wider policy gives more":             {asked: 45 * m, rules: withOverride(TTL{Max: 45 * m}), want: 45 * m},
		"more than the most is refused":         {asked: 60 * m, rules: stage, code: refusal.InvalidRequest, field: "spec.ttl", message: `1h0m0s is longer than 30m0s, the most that policy "shop" and the hub allow on cell "eu-1"; ask for less or leave ttl out`},
		"a nanosecond more, too":                {asked: 30*m + 1, rules: stage, code: refusal.InvalidRequest, field: "spec.ttl", message: `30m0.000000001s is longer than 30m0s, the most that policy "shop" and the hub allow on cell "eu-1"; ask for less or leave ttl out`},
		"a policy can't exceed the ceiling":     {asked: 61 * m, rules: withOverride(TTL{Max: 120 * m}), code: refusal.InvalidRequest, field: "spec.ttl", message: `1h1m0s is longer than 1h0m0s, the most that policy "shop" and the hub allow on cell "eu-1"; ask for less or leave ttl out`},
		"a negative one is refused":             {asked: -m, rules: stage, code: refusal.InvalidRequest, field: "spec.ttl", message: `must be more than zero, such as 15m; leave ttl out for the default`},
		"a ceiling under the floor is refused":  {asked: 0, rules: withCeiling(10*m - 1), code: refusal.MintFailed, message: `9m59.999999999s is the most that policy "shop" and the hub allow on cell "eu-1"` + under},
		"whatever is asked":                     {asked: 5 * m, rules: withCeiling(5 * m), code: refusal.MintFailed, message: `5m0s is the most that policy "shop" and the hub allow on cell "eu-1"` + under},
		"a policy's max under it as well":       {asked: 0, rules: withOverride(TTL{Max: 5 * m}), code: refusal.MintFailed, message: `5m0s is the most that policy "shop" and the hub allow on cell "eu-1"` + under},
		"no ceiling gives nothing, by accident": {asked: 0, rules: withCeiling(0), code: refusal.MintFailed, message: `0s is the most that policy "shop" and the hub allow on cell "eu-1"` + under},
	} {
		t.Run(name, func(t *testing.T) {
			got, r := ResolveTTL(test.asked, test.rules)
			if test.code != "" {
				wantRefusal(t, r, test.code, test.field, test.message)
				if got != 0 {
					t.Errorf("%v came with the refusal", got)
				}
				return
			}
			if r != nil || got != test.want {
				t.Errorf("got %v, refusal %v; want %v", got, r, test.want)
			}
		})
	}
}

func TestARevocableCredentialMayLiveForAMinute(t *testing.T) {
	rules := TTLRules{Cell: "eu-1", Env: "prod", Ceiling: 60 * m, Policy: &Policy{
		Name: "shop", TokenTTL: TTL{Default: 2 * m, Max: 5 * m}, scope: Scope{Revocable: true}}}
	for name, test := range map[string]struct{ asked, want time.Duration }{
		"nothing asked is the default":  {0, 2 * m},
		"a minute is given":             {m, m},
		"less is raised to it":          {time.Second, m},
		"the most is given":             {5 * m, 5 * m},
		"parts of a second don't count": {90*time.Second + 999*time.Millisecond, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got, refused := ResolveTTL(test.asked, rules); refused != nil || got != test.want {
				t.Errorf("got %s, %v; want %s", got, refused, test.want)
			}
		})
	}
	if _, refused := ResolveTTL(6*m, rules); refused == nil || refused.Code != refusal.InvalidRequest {
		t.Errorf("more than the most: %v", refused)
	}
	rules.Ceiling = 30 * time.Second
	if _, refused := ResolveTTL(0, rules); refused == nil || refused.Code != refusal.MintFailed || !strings.Contains(refused.Message, "less than 1m0s") {
		t.Errorf("a ceiling under a minute: %v", refused)
	}
}

func TestParseTTL(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"":      0,
		"15m":   15 * m,
		"1h30m": 90 * m,
		"900s":  15 * m,
		"0.5h":  30 * m,
		"1ns":   1,
	} {
		if got, r := ParseTTL(text); r != nil || got != want {
			t.Errorf("%q: %v, refusal %v; want %v", text, got, r, want)
		}
	}
	const notOne = ` is not a duration; write it like 15m or 1h30m, or leave ttl out`
	const notPositive = ` is not more than zero; write it like 15m, or leave ttl out for the default`
	for text, message := range map[string]string{
		"5 minutes":             `"5 minutes"` + notOne,
		"15":                    `"15"` + notOne,
		"NaN":                   `"NaN"` + notOne,
		"1e99h":                 `"1e99h"` + notOne,
		"99999999h":             `"99999999h"` + notOne,
		" 15m":                  `" 15m"` + notOne,
		"1d":                    `"1d"` + notOne,
		"m":                     `"m"` + notOne,
		"15m\n":                 `"15m\n"` + notOne,
		"-5m":                   `"-5m"` + notPositive,
		"0s":                    `"0s"` + notPositive,
		"0":                     `"0"` + notPositive,
		"0.1ns":                 `"0.1ns"` + notPositive,
		strings.Repeat("1", 33): `is 33 bytes long, too long for a duration; write it like 15m or 1h30m, or leave ttl out`,
	} {
		got, r := ParseTTL(text)
		wantRefusal(t, r, refusal.InvalidRequest, "spec.ttl", message)
		if got != 0 {
			t.Errorf("%q: %v came with the refusal", text, got)
		}
	}
}
