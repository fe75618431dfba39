package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/oracle"
)

// settled waits until the CR is as it should be and nothing happens any more. The
// error says what is missing.
func (t *trial) settled(ctx context.Context, present bool) error {
	var missing error
	err := wait.PollUntilContextTimeout(ctx, look, cmp.Or(t.lab.options.Settle, settleLimit), true, func(ctx context.Context) (bool, error) {
		missing = errors.Join(t.missing(ctx, present)...)
		return missing == nil, nil
	})
	if err != nil && missing != nil {
		return missing
	}
	return err
}

// missing says what keeps the trial from being settled.
func (t *trial) missing(ctx context.Context, present bool) []error {
	var found []error
	cr, err := t.user.fetch(ctx)
	switch {
	case err != nil:
		found = append(found, err)
	case present && cr == nil:
		found = append(found, errors.New("there is no resource"))
	case !present && cr != nil:
		found = append(found, errors.New("the resource is still there"))
	case present:
		found = append(found, oracle.Unreported(cr)...)
	}
	if err := t.calm(); err != nil {
		found = append(found, err)
	}
	if len(found) > 0 {
		return found // The look at all processes costs the most.
	}
	if left := t.left(cr); len(left) > 0 {
		found = append(found, fmt.Errorf("left: %v", left))
	}
	return found
}

// calm says what keeps the manager from being at rest: it does not watch, or it,
// the fault or the beginning of its watch is too recent.
func (t *trial) calm() error {
	t.mu.Lock()
	last := t.ended
	t.mu.Unlock()
	watches := false
	for _, r := range t.proxy.Journal() {
		open := t.watches(r) && r.Answered.IsZero()
		watches = watches || open
		if open || r.Write() {
			last = latest(last, r.Arrived, r.Answered)
		}
	}
	if !watches {
		return errors.New("the manager does not watch")
	}
	if since := time.Since(last); since < quiet {
		return fmt.Errorf("something happened %s ago", since)
	}
	return nil
}

// watches is true for a watch of the kind that the API server has accepted.
func (t *trial) watches(r apiproxy.Request) bool {
	return r.Verb == "watch" && t.ours(r) && r.Upstream == http.StatusOK
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
