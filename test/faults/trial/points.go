package trial

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/stub"
)

// isWrite recognizes the writes of the manager.
func (t *trial) isWrite(r apiproxy.Request, point plan.Point) bool {
	if point == plan.Event {
		return r.Resource == "events" && r.Verb == "create"
	}
	return r.Verb == "patch" && t.ours(r) && pointOfPatch(r) == point
}

// pointOfPatch tells the manager's writes to a resource apart.
func pointOfPatch(r apiproxy.Request) plan.Point {
	says := func(text string) bool { return bytes.Contains(r.Body, []byte(text)) }
	switch {
	case r.Subresource == "status" && says("Running reconciliation"):
		return plan.StatusRunning
	case r.Subresource == "status":
		return plan.StatusResult
	case says(`"op":"add","path":"/metadata/finalizers`):
		return plan.FinalizerAdd
	case says(`"op":"remove","path":"/metadata/finalizers`):
		return plan.FinalizerRemove
	default:
		return ""
	}
}

// timely is true from when the writes of the operation can come: the point of a
// recreated CR is not its predecessor's.
func (t *trial) timely() bool {
	switch {
	case t.plan.Operation != plan.Recreate || t.plan.Point == plan.FinalizerRemove:
		return t.armed.Load()
	case t.plan.Point == plan.FinalizerAdd:
		return t.gone.Load() // The manager may be faster than the answer to the user.
	default:
		return t.uid(1) != ""
	}
}

// concerns is true for a run that the plan's point is about.
func (t *trial) concerns(r stub.Record) bool {
	if !t.timely() {
		return false
	}
	switch t.plan.Operation {
	case plan.Update, plan.Repair:
		return r.Generation > 1
	case plan.Delete, plan.DeleteRetry:
		return r.Finalizer
	case plan.Recreate:
		return r.UID == t.uid(1)
	case plan.PlainRecreateRunning, plan.PlainDeleteRunning:
		return r.UID == t.uid(0)
	default:
		return true
	}
}

// met is called by the stage: the run waits for its return.
func (t *trial) met(r stub.Record) {
	if !t.concerns(r) {
		return
	}
	phase := plan.Point(r.What)
	ctx, cancel := context.WithTimeout(context.Background(), t.strikeLimit())
	defer cancel()
	operate := func() {
		if phase == t.moment() {
			t.actDuringRun(ctx)
		}
	}
	if !t.plan.Fault.Blind() {
		operate()
	}
	switch {
	case phase == plan.Exited:
		t.exits(r.PID)
	case phase == t.plan.Point:
		t.strikePhase(ctx, r.PID)
	}
	operate() // What the manager must not see comes when it is blind.
	if phase == plan.MidTask && t.kind() == plain && t.plan.Fault != plan.CrashAfter && !t.plan.Fault.Blind() {
		hold(ctx, r.PID) // Its CR is gone, so it has to be ended.
	}
}

// moment is the phase in which an operation during a run goes on.
func (t *trial) moment() plan.Point {
	switch {
	case t.plan.Point == plan.BeforeStatus:
		return plan.Exited
	case t.plan.Point.Phase():
		return t.plan.Point
	default:
		return plan.MidTask
	}
}

// hold keeps a run in its phase until it is ended from outside.
func hold(ctx context.Context, pid int) {
	_ = wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(context.Context) (bool, error) { return !alive(pid), nil })
}

// exits strikes when the process is gone that has said that it exits.
func (t *trial) exits(pid int) {
	t.exiting.Store(true)
	if t.plan.Point != plan.Exited {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), t.strikeLimit())
		defer cancel()
		hold(ctx, pid)
		t.strikePhase(ctx, 0)
	}()
}

// readBeforeStatus recognizes the live read that precedes the write of the result.
func (t *trial) readBeforeStatus(r apiproxy.Request) bool {
	return t.exiting.Load() && r.Verb == "get" && t.ours(r)
}

// awaitDirectory strikes when the run's directory is made, or its inputs are
// written: then its artifact directory is made. It looks at the file system with
// each change that the kernel tells of.
func (t *trial) awaitDirectory(ctx context.Context) error {
	notify, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("watch the run directory: %w", err)
	}
	changes := os.NewFile(uintptr(notify), "inotify")
	seen := t.artifacts()
	ctx, cancel := context.WithTimeout(ctx, t.strikeLimit())
	stop := context.AfterFunc(ctx, func() { _ = changes.Close() })
	go func() {
		defer cancel()
		defer stop()
		defer changes.Close()
		buffer := make([]byte, 4096)
		for !t.directoryReached(notify, seen) {
			if _, err := changes.Read(buffer); err != nil {
				return // The limit has passed.
			}
		}
		if !t.plan.Fault.Blind() {
			t.actDuringRun(ctx)
		}
		t.strikePhase(ctx, 0)
		t.actDuringRun(ctx) // What the manager must not see comes when it is blind.
	}()
	return nil
}

// directoryReached looks, and has the kernel tell of further changes.
func (t *trial) directoryReached(notify int, seen []string) bool {
	root := t.managers.RunDir
	homes, _ := filepath.Glob(filepath.Join(root, "[0-9a-f]*")) // The pattern is right.
	for _, dir := range append([]string{root}, homes...) {
		_, _ = unix.InotifyAddWatch(notify, dir, unix.IN_CREATE|unix.IN_MOVED_TO)                             // It may be gone.
		_, _ = unix.InotifyAddWatch(notify, filepath.Join(dir, "artifacts"), unix.IN_CREATE|unix.IN_MOVED_TO) // It may not be there yet.
	}
	if !t.timely() {
		return false
	}
	if t.plan.Point == plan.InputsWritten {
		return slices.ContainsFunc(t.artifacts(), func(path string) bool { return !slices.Contains(seen, path) })
	}
	made, _ := filepath.Glob(filepath.Join(root, "[0-9a-f]*", "run"))
	return slices.ContainsFunc(made, func(path string) bool {
		return t.plan.Operation != plan.Recreate || strings.Contains(path, t.uid(1))
	})
}

// artifacts are those of all runs so far.
func (t *trial) artifacts() []string {
	found, err := filepath.Glob(filepath.Join(t.managers.RunDir, "[0-9a-f]*", "artifacts", "*"))
	t.note(err)
	return found
}
