package contact

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

func TestContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Contact{}
		lost := func(want time.Duration) {
			t.Helper()
			time.Sleep(time.Minute)
			if got := c.LostFor(time.Now()); got != want {
				t.Errorf("lost for %s, want %s", got, want)
			}
		}
		c.Touch(time.Now())
		lost(time.Minute)

		first := c.Hold(watch.NewFake())
		lost(0)

		second := c.Hold(watch.NewFake())
		first.Stop()
		first.Stop() // a reflector may stop a watch twice
		lost(0)

		second.Stop()
		lost(time.Minute)
		lost(2 * time.Minute)
	})
}
