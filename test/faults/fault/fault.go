// Package fault makes of a plan's fault what a fault proxy does to requests.
//
// It does not know which requests these are, or what a plan is about.
package fault

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/plan"
)

// Window is how long a fault lasts, counted from when it strikes. Writes are tried
// again for 5 s: some faults last longer than that.
func Window(f plan.Fault) time.Duration {
	switch f {
	case plan.Internal, plan.Away:
		return 7 * time.Second
	case plan.Timeout:
		return 4 * time.Second
	case plan.Frozen: // The manager gives a request 15 s.
		return 20 * time.Second
	default:
		return 2500 * time.Millisecond
	}
}

// Lasts is true for a fault that only lets requests fail, for its window.
func Lasts(f plan.Fault) bool {
	return slices.Contains([]plan.Fault{
		plan.Conflict, plan.Throttled, plan.Internal, plan.Unavailable, plan.Forbidden, plan.Timeout, plan.Reset, plan.Lost,
	}, f)
}

// AtWrite is what meets a write. strike is called with each write that the fault meets,
// before the API server has it or, for a fault that comes afterwards, before the client
// has its answer.
func AtWrite(f plan.Fault, strike func()) apiproxy.Fault {
	hook := func(apiproxy.Request) { strike() }
	switch f {
	case plan.CrashAfter, plan.Stale:
		return apiproxy.Fault{After: hook, Break: true}
	case plan.Race, plan.Hidden, plan.Delayed:
		return apiproxy.Fault{Before: hook}
	case plan.CrashBefore, plan.Away, plan.Frozen:
		return apiproxy.Fault{Before: hook, Withhold: true, Break: true}
	default:
		refusal := Refusal(f)
		refusal.Before = hook
		return refusal
	}
}

// Refusal is how requests fail at a fault that lasts.
func Refusal(f plan.Fault) apiproxy.Fault {
	switch f {
	case plan.Lost:
		return apiproxy.Fault{Break: true}
	case plan.Reset:
		return apiproxy.Fault{Withhold: true, Break: true}
	case plan.Timeout:
		return apiproxy.Fault{Delay: time.Second, Withhold: true, Code: http.StatusGatewayTimeout}
	default: // The name of the fault is a code.
		code, err := strconv.Atoi(string(f))
		if err != nil {
			panic(fmt.Errorf("the fault %q only lets no request fail", f))
		}
		return apiproxy.Refuse(code)
	}
}
