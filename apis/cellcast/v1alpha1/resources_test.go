package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestResourceListReadsOrdinaryQuantities(t *testing.T) {
	for _, text := range []string{`{"cpu":"500m","memory":"4Gi"}`, `{"cpu":2}`, `{"cpu":1.5,"nvidia.com/gpu":"1e1"}`, `{}`, `null`} {
		var got ResourceList
		var want corev1.ResourceList
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		for name, quantity := range want {
			if have := got[name]; have.Cmp(quantity) != 0 {
				t.Errorf("%s: %s is %s", text, name, have.String())
			}
		}
	}
}

// Each of these takes the plain type minutes and gigabytes.
func TestResourceListRefusesWhatWouldTakeForever(t *testing.T) {
	for sentence, text := range map[string]string{
		"a tiny number":          `{"cpu":"1e-2000000000"}`,
		"a huge number":          `{"cpu":"1e2000000000"}`,
		"without quotes":         `{"cpu":1e-2000000000}`,
		"with leading zeros":     `{"cpu":"1e-0002000000000"}`,
		"with an escape":         `{"cpu":"1\u0065-2000000000"}`,
		"with an escaped minus":  `{"cpu":"1e\u002d2000000000"}`,
		"many digits":            `{"cpu":"` + strings.Repeat("9", 1<<20) + `"}`,
		"a resource given twice": `{"cpu":"1","cpu":"2"}`,
		"a number that is none":  `{"cpu":"NaN"}`,
		"a list":                 `["cpu"]`,
	} {
		t.Run(sentence, func(t *testing.T) {
			done := make(chan error, 1)
			go func() {
				var list ResourceList
				done <- json.Unmarshal([]byte(text), &list)
			}()
			select {
			case err := <-done:
				if err == nil {
					t.Error("it was taken")
				}
			case <-time.After(time.Minute):
				t.Fatal("it's still being read")
			}
		})
	}
}
