package trial

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/fault"
	"github.com/ensign-operator/ensign/test/faults/plan"
)

// arm prepares the fault, before the user acts.
func (t *trial) arm(ctx context.Context) error {
	defer t.armed.Store(true)
	if t.plan.Fault == "" {
		t.strike(t.finish)
		return nil
	}
	if t.plan.Fault == plan.Stale {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(t.user.object(nil).GroupVersionKind())
		if err := t.lab.client.List(ctx, list, client.InNamespace(t.user.namespace)); err != nil {
			return err
		}
		var err error
		if t.snapshot, err = list.MarshalJSON(); err != nil {
			return err
		}
	}
	switch {
	case t.plan.Point == plan.DirectoryMade || t.plan.Point == plan.InputsWritten:
		return t.awaitDirectory(ctx)
	case t.plan.Point == plan.BeforeStatus:
		crash := t.plan.Fault.Crash()
		t.proxy.Add(apiproxy.Rule{Match: t.readBeforeStatus, Once: true, Fault: apiproxy.Fault{
			Before: func(apiproxy.Request) { t.strikePhase(ctx, 0) }, Withhold: crash, Break: crash,
		}})
	case t.plan.Point == plan.Exited:
		// The manager waits with what it has to say until the fault has struck.
		t.proxy.Add(apiproxy.Rule{Match: t.readBeforeStatus, Once: true, Fault: apiproxy.Fault{Before: func(apiproxy.Request) {
			select {
			case <-t.struck:
			case <-time.After(5 * time.Second):
			}
		}}})
	case !t.plan.Point.Phase():
		t.armWrite(ctx)
	}
	return nil
}

// strike lets the fault strike, once.
func (t *trial) strike(act func()) {
	first := false
	t.struckBy.Do(func() { first = true }) // act may take long, and the next run must not wait for it.
	if first {
		close(t.struck)
		act()
	}
}

// finish notes that the fault is over.
func (t *trial) finish() {
	t.mu.Lock()
	t.ended = time.Now()
	t.mu.Unlock()
	close(t.over)
}

// later ends a fault when its window has passed.
func (t *trial) later(end func()) {
	time.AfterFunc(fault.Window(t.plan.Fault), func() {
		end()
		t.finish()
	})
}

func (t *trial) isOver() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.ended.IsZero()
}

// armWrite adds the rule of a fault that meets a write.
func (t *trial) armWrite(ctx context.Context) {
	effect, lasts := t.effect(ctx), fault.Lasts(t.plan.Fault)
	if lasts {
		effect = func() { t.later(func() {}) }
	}
	t.proxy.Add(apiproxy.Rule{
		Match: func(r apiproxy.Request) bool { return t.timely() && !t.isOver() && t.isWrite(r, t.plan.Point) },
		Once:  !lasts || t.plan.Fault == plan.Lost,
		Fault: fault.AtWrite(t.plan.Fault, func() { t.strike(effect) }),
	})
}

// effect is what a fault does when it strikes; nil for one that only lets requests fail.
func (t *trial) effect(ctx context.Context) func() {
	switch t.plan.Fault {
	case plan.CrashBefore, plan.CrashAfter:
		return t.crash
	case plan.Stale:
		return t.crashIntoThePast
	case plan.Away:
		return func() { t.later(t.proxy.Away()) }
	case plan.Frozen:
		return t.freeze
	case plan.Hidden, plan.Delayed:
		return func() { t.blind(ctx) }
	case plan.Race:
		return func() { t.race(ctx) }
	default:
		return nil
	}
}

// strikePhase strikes while a run is in a phase. The run, if there is a process of
// it, waits for the return.
func (t *trial) strikePhase(ctx context.Context, pid int) {
	t.strike(func() {
		effect := t.effect(ctx)
		switch {
		case effect == nil:
			t.refuseAll()
		case t.plan.Fault == plan.CrashAfter:
			go effect()
		default:
			effect()
			if t.plan.Fault.Crash() {
				t.holdIfAny(ctx, pid)
			}
		}
	})
}

// holdIfAny keeps the run of a killed manager, if there is one, from ending by itself.
func (t *trial) holdIfAny(ctx context.Context, pid int) {
	limit := t.strikeLimit() // Another manager has to start, and to find and end it.
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if hold(ctx, pid); pid != 0 && alive(pid) {
		t.managers.blame("I6", "the run of a killed manager lived on for %s, although another manager has started", limit)
	}
}
