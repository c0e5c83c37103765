package hub

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

func TestFewAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		handler := fewAtOnce(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		ask := func() int {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
			return w.Code
		}
		codes := make(chan int, 2)
		for range 2 {
			go func() { codes <- ask() }()
		}
		synctest.Wait()
		if got := ask(); got != http.StatusTooManyRequests {
			t.Errorf("a third review gets %d", got)
		}
		close(release)
		for range 2 {
			if got := <-codes; got != http.StatusOK {
				t.Errorf("one of the two gets %d", got)
			}
		}
		if got := ask(); got != http.StatusOK {
			t.Errorf("with both done, a review gets %d", got)
		}
	})
}
