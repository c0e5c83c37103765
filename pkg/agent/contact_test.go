package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

func TestContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &contact{}
		lost := func(want time.Duration) {
			t.Helper()
			time.Sleep(time.Minute)
			if got := c.lostFor(time.Now()); got != want {
				t.Errorf("lost for %s, want %s", got, want)
			}
		}
		c.touch(time.Now())
		lost(time.Minute)

		first := c.hold(watch.NewFake())
		lost(0)

		second := c.hold(watch.NewFake())
		first.Stop()
		first.Stop() // a reflector may stop a watch twice
		lost(0)

		second.Stop()
		lost(time.Minute)
		lost(2 * time.Minute)
	})
}
