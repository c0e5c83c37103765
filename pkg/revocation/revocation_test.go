package revocation

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

var owner = Owner{Class: "Pipeline", User: "pipeline:https://ci.example#acme", Issuer: "https://ci.example", Subject: "repo:acme/api"}

const nonce = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

func TestSecretNameIsOneOwnersAlone(t *testing.T) {
	name := SecretName(owner, nonce)
	const want = "cellcast-1946d58216215c4ebe6d4dfd67dcc87a185804e18fdc1cbfeb842db7ca7469ab" // pinned: a hub of another version must find it
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		t.Errorf("%s is no name of a Secret: %v", name, wrong)
	}
	others := map[string]string{
		"another nonce":   SecretName(owner, nonce+"2"),
		"another class":   SecretName(Owner{"HubUser", owner.User, owner.Issuer, owner.Subject}, nonce),
		"another user":    SecretName(Owner{owner.Class, "dana", owner.Issuer, owner.Subject}, nonce),
		"another issuer":  SecretName(Owner{owner.Class, owner.User, "https://other.example", owner.Subject}, nonce),
		"another subject": SecretName(Owner{owner.Class, owner.User, owner.Issuer, "repo:acme/web"}, nonce),
		"parts run over":  SecretName(Owner{owner.Class, owner.User + owner.Issuer, "", owner.Subject}, nonce),
	}
	for sentence, other := range others {
		if other == name {
			t.Errorf("%s has the same name", sentence)
		}
	}
	if name != want {
		t.Errorf("got %s, want %s", name, want)
	}
}

func TestParseNonce(t *testing.T) {
	for sentence, tt := range map[string]struct {
		nonce string
		good  bool
	}{
		"what the hub draws":        {nonce, true},
		"16 bytes in base64url":     {"AAAAAAAAAAAAAAAAAAAA-_", true},
		"64 characters":             {strings.Repeat("a", 64), true},
		"empty":                     {"", false},
		"too short to be random":    {strings.Repeat("a", 21), false},
		"too long":                  {strings.Repeat("a", 65), false},
		"a character that isn't in": {nonce + "=", false},
		"a line break at the end":   {nonce + "\n", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			refused := ParseNonce("spec.revocationNonce", tt.nonce)
			if (refused == nil) != tt.good {
				t.Errorf("got %v", refused)
			}
			if refused != nil && tt.nonce != "" && strings.Contains(refused.Error(), tt.nonce) {
				t.Errorf("the refusal repeats the nonce: %v", refused)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	noon := time.Date(2027, 3, 4, 12, 0, 0, 0, time.UTC)
	for sentence, tt := range map[string]struct {
		label string
		want  time.Time
		good  bool
	}{
		"two minutes":              {Label(2 * time.Minute), noon.Add(2 * time.Minute), true},
		"a day":                    {Label(MaxTTL), noon.Add(MaxTTL), true},
		"no number: due at once":   {"soon", noon, false},
		"empty: due at once":       {"", noon, false},
		"negative: due at once":    {"-5", noon, false},
		"too long: due at once":    {"86401", noon, false},
		"overflowing: due at once": {"9223372036854775807", noon, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := Deadline(noon, tt.label)
			if !got.Equal(tt.want) || (err == nil) != tt.good {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}
