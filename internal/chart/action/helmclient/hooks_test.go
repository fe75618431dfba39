package helmclient

import (
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/kube"
)

// helmWaiter keeps how long it may wait.
type helmWaiter struct {
	kube.Waiter

	timeout time.Duration
}

func (w *helmWaiter) Wait(_ kube.ResourceList, timeout time.Duration) error {
	w.timeout = timeout
	return nil
}

func TestWaitsEndTogether(t *testing.T) {
	for name, test := range map[string]struct {
		left, timeout, least, most time.Duration
	}{
		"the first wait":              {10 * time.Hour, time.Hour, time.Hour, time.Hour},
		"a wait after others":         {2 * time.Hour, 10 * time.Hour, time.Hour, 2 * time.Hour},
		"a wait when nothing is left": {-time.Hour, time.Hour, 0, 0},
		"a wait without a limit":      {10_000 * time.Hour, 10_000 * time.Hour, 9_999 * time.Hour, 10_000 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			helm := &helmWaiter{}
			w := waiter{Waiter: helm, client: &Client{Until: time.Now().Add(test.left)}}
			if err := w.Wait(nil, test.timeout); err != nil {
				t.Fatal(err)
			}
			if helm.timeout < test.least || helm.timeout > test.most {
				t.Errorf("Helm waits for %s; want %s to %s", helm.timeout, test.least, test.most)
			}
		})
	}
}
