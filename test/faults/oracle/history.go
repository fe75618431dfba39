package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/stub"
	"github.com/ensign-operator/ensign/test/harness"
)

// runs checks I1, and that nothing ran more often than faults explain.
func (j *judge) runs() {
	for _, r := range j.Runs {
		if r.What == stub.Overlaps {
			j.add("I1", "run %s of %s began while another was live", r.Run, r.UID)
		}
	}
	for i := range j.UIDs {
		for _, finalizer := range []bool{false, true} {
			got, most := j.started(i, finalizer), j.baseline.started(i, finalizer)+j.extraRuns(i)
			if got > most {
				j.add("runs", "%d runs (of the finalizer: %v) of resource %d, want at most %d", got, finalizer, i+1, most)
			}
		}
	}
}

// started counts the runs of the resource with the number.
func (e Evidence) started(number int, finalizer bool) int {
	n := 0
	for _, r := range e.Runs {
		if r.What == stub.Started && r.Finalizer == finalizer && number < len(e.UIDs) && r.UID == e.UIDs[number] {
			n++
		}
	}
	return n
}

// extraRuns is how many runs more than without the fault there may be of the
// resource with the number.
func (j *judge) extraRuns(number int) int {
	extra := j.Kills
	if j.reportedBefore() {
		extra = 0
	}
	if j.Plan.Fault.Blind() {
		extra += j.Touched + 1
	}
	if number > 0 && j.Plan.Fault == plan.Away {
		// A new list after the watch broke shows it first, at a version after its own
		// run's writes.
		extra++
	}
	return extra
}

// reportedBefore is true for a crash after all has been reported: the next manager
// has nothing to do.
func (j *judge) reportedBefore() bool {
	if j.Plan.Fault != plan.CrashBefore && j.Plan.Fault != plan.CrashAfter {
		return false
	}
	// An Event is written beside what comes next, where something does.
	alone := j.Plan.Operation == plan.Create || j.Plan.Operation == plan.Delete
	return j.Plan.Point == plan.Event && alone || j.Plan.Point == plan.StatusResult && j.Plan.Fault == plan.CrashAfter
}

// backoff checks that the pauses begin anew with a generation: its first failure is followed by
// another run before lastPause is over. That should be a second. A manager that counts on from
// the failures before has come to lastPause, and no machine makes a pause shorter; a busy one may
// make it longer, so no less is asked for. With faults on the way it may take longer still.
func (j *judge) backoff() {
	if j.Plan.Fault != "" {
		return
	}
	failed := map[string]time.Time{}
	for _, r := range j.Runs {
		key := fmt.Sprint(r.UID, r.Generation, r.Finalizer)
		at, known := failed[key]
		switch {
		case !known && r.What == stub.Ended && !r.Succeeded:
			failed[key] = r.Time
		case known && r.What == stub.Started && !at.IsZero():
			if pause := r.Time.Sub(at); pause >= lastPause {
				j.add("I5", "generation %d ran again %s after its first failure", r.Generation, pause)
			}
			failed[key] = time.Time{}
		}
	}
}

// firstPause is the pause after a first failure. Each further one is twice as long, up to the
// --max-backoff of the managers.
const (
	firstPause = time.Second
	lastPause  = 10 * time.Second
)

// throttle checks I11: while a generation fails, it runs as often as its back-off allows, whatever
// triggers it. A manager that starts anew knows of no failure.
func (j *judge) throttle() {
	if j.Kills > 0 {
		return
	}
	type key struct {
		uid       string
		finalizer bool
	}
	failures, ended := map[key]int{}, map[key]stub.Record{}
	for _, r := range j.Runs {
		k := key{r.UID, r.Finalizer}
		last := ended[k]
		switch {
		case r.What == stub.Ended && r.Succeeded:
			failures[k] = 0
		case r.What == stub.Ended:
			if last.Generation != r.Generation {
				failures[k] = 0
			}
			failures[k]++
			ended[k] = r
		case r.What == stub.Started && failures[k] > 0 && last.Generation == r.Generation:
			least := min(firstPause<<(failures[k]-1), lastPause)
			if pause := r.Time.Sub(last.Time); pause < least {
				j.add("I11", "after %d failures generation %d ran again after %s", failures[k], r.Generation, pause)
			}
		}
	}
}

// ran reports whether the journal has such an end before the time.
func (j *judge) ran(before time.Time, matches func(stub.Record) bool) bool {
	return slices.ContainsFunc(j.Runs, func(r stub.Record) bool { return r.What == stub.Ended && r.Time.Before(before) && matches(r) })
}

// success checks I2: what is called successful has been.
func (j *judge) success() {
	for _, p := range j.patches() {
		c := harness.ConditionOf(p.object, "Successful")
		uid, generation := string(p.object.GetUID()), c.Generation
		if c.Status == "True" && !j.ran(p.request.Answered, func(r stub.Record) bool {
			// A CR that others hold gets the result of its finalizer's run.
			own := !r.Finalizer || p.object.GetDeletionTimestamp() != nil
			return r.Succeeded && own && r.UID == uid && r.Generation == generation
		}) {
			j.add("I2", "success was reported of generation %d of %s, which no run came to", generation, uid)
			return
		}
	}
	j.present()
}

// present checks that the last run was about the spec as it is.
func (j *judge) present() {
	if j.Final == nil {
		return
	}
	spec, err := json.Marshal(j.Final.Object["spec"])
	if err != nil {
		j.add("I2", "%v", err)
	}
	if !j.ran(time.Now(), func(r stub.Record) bool {
		return r.Succeeded && r.UID == string(j.Final.GetUID()) && r.Generation == j.Final.GetGeneration() && r.Spec == string(spec)
	}) {
		j.add("I2", "no run succeeded with the spec as it is at the end")
	}
}

// finalizer checks I3, and that nothing ran without the finalizer.
func (j *judge) finalizer() {
	if j.Plan.Operation.Course().Plain {
		return
	}
	added := j.finalizersAdded()
	for _, r := range j.Runs {
		if at, ok := added[r.UID]; r.What == stub.Started && (!ok || at.After(r.Time)) {
			j.add("I3", "run %s of %s began before the finalizer was there", r.Run, r.UID)
		}
	}
	for _, uid := range j.UIDs {
		gone := j.Final == nil || string(j.Final.GetUID()) != uid
		if _, held := added[uid]; gone && held && !j.finalized(uid, time.Now()) {
			j.add("I3", "%s is gone, but its finalizer's run did not succeed", uid)
		}
	}
}

// finalizersAdded returns the time of each resource's finalizer, and checks that
// none was removed before its run had succeeded.
func (j *judge) finalizersAdded() map[string]time.Time {
	added := map[string]time.Time{}
	for _, p := range j.patches() {
		uid, held := string(p.object.GetUID()), slices.ContainsFunc(p.object.GetFinalizers(), ours)
		if _, known := added[uid]; !known && held {
			added[uid] = p.request.Arrived
		}
		if p.request.Subresource == "" && !held && !j.finalized(uid, p.request.Answered) {
			j.add("I3", "the finalizer of %s was removed, but its run did not succeed", uid)
		}
	}
	return added
}

func ours(finalizer string) bool { return strings.HasSuffix(finalizer, "/finalizer") }

func (j *judge) finalized(uid string, before time.Time) bool {
	return j.ran(before, func(r stub.Record) bool { return r.Succeeded && r.Finalizer && r.UID == uid })
}

// status checks I4: no generation goes back, and nothing is said of a resource
// that did not run.
func (j *judge) status() {
	latest := map[string]int64{}
	for _, p := range j.patches() {
		if p.request.Subresource != "status" {
			continue
		}
		uid := string(p.object.GetUID())
		status, _, _ := unstructured.NestedMap(p.object.Object, "status")
		observed := number(status["observedGeneration"])
		if observed < latest[uid] || observed > p.object.GetGeneration() {
			j.add("I4", "generation %d of %s was reported after %d (it has %d)", observed, uid, latest[uid], p.object.GetGeneration())
		}
		latest[uid] = observed
		if c := harness.ConditionOf(p.object, "Failure"); c.Status == "True" && !j.failed(uid, p.request.Answered) {
			j.add("I4", "a failure of %s was reported, which no run came to: %+v", uid, c)
		}
	}
}

// failed is true when a run began that came to no success.
func (j *judge) failed(uid string, before time.Time) bool {
	return slices.ContainsFunc(j.Runs, func(r stub.Record) bool { return r.UID == uid && !r.Succeeded && r.Time.Before(before) })
}

// writes checks I9: every write changes something, and there are no more than
// the faults explain.
func (j *judge) writes() {
	version := map[string]string{}
	for _, p := range j.patches() {
		uid := string(p.object.GetUID())
		// The object goes with its last finalizer, and is shown as it was.
		last := p.object.GetDeletionTimestamp() != nil && len(p.object.GetFinalizers()) == 0
		if version[uid] == p.object.GetResourceVersion() && !last {
			j.add("I9", "request %d changed nothing: %s", p.request.Seq, p.request.Body)
		}
		version[uid] = p.object.GetResourceVersion()
	}
	most := j.baseline.steps() + 4*j.extraRuns(len(j.UIDs)-1)
	if j.Plan.Fault == plan.Race && j.Plan.Point == plan.FinalizerAdd {
		most++ // A CR that others hold does not go with our finalizer, so its status is written.
	}
	if got := j.steps(); got > most {
		j.add("I9", "%d writes, want at most %d", got, most)
	}
	if got, most := len(j.Events), len(j.baseline.Events)+j.extraRuns(len(j.UIDs)-1); got > most {
		j.add("I9", "%d Events, want at most %d: %v", got, most, j.Events)
	}
}
