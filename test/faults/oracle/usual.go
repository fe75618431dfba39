package oracle

import (
	"slices"

	"github.com/ensign-operator/ensign/test/faults/plan"
)

// usual is what an operation comes to without a fault: more is done for nothing,
// and less is forgotten.
type usual struct {
	// runs are those of the content and of the finalizer, by resource.
	runs [][2]int
	// writes to the resources, at most.
	writes int
	events int
}

// usualOf knows every operation.
func usualOf(o plan.Operation) usual {
	return map[plan.Operation]usual{
		plan.Create: {runs: [][2]int{{1, 0}}, writes: 3, events: 1},
		plan.Update: {runs: [][2]int{{2, 0}}, writes: 5, events: 1},
		// The object goes with its finalizer, and gets no result before.
		plan.Delete:        {runs: [][2]int{{1, 1}}, writes: 5, events: 2},
		plan.DeleteRunning: {runs: [][2]int{{1, 1}}, writes: 5, events: 2},
		plan.Recreate:      {runs: [][2]int{{1, 1}, {1, 0}}, writes: 8, events: 3},
		// Two failures for different reasons.
		plan.Retry:       {runs: [][2]int{{3, 0}}, writes: 7, events: 3},
		plan.DeleteRetry: {runs: [][2]int{{1, 3}}, writes: 9, events: 4},
		// The same failure again and again, and once more after the repair.
		plan.Repair:               {runs: [][2]int{{6, 0}}, writes: 13, events: 2},
		plan.PlainDeleteRunning:   {runs: [][2]int{{1, 0}}, writes: 1, events: 0},
		plan.PlainRecreateRunning: {runs: [][2]int{{1, 0}, {1, 0}}, writes: 3, events: 1},
	}[o]
}

// nothingForNothing judges what the others are compared with.
func (j *judge) nothingForNothing() {
	if j.Plan.Fault != "" {
		return
	}
	want := usualOf(j.Plan.Operation)
	var runs [][2]int
	for i := range j.UIDs {
		runs = append(runs, [2]int{j.started(i, false), j.started(i, true)})
	}
	if !slices.Equal(runs, want.runs) {
		j.add("runs", "without a fault there were %v runs (of content and finalizer, by resource), want %v", runs, want.runs)
	}
	if got := j.steps(); got > want.writes {
		j.add("I9", "without a fault there were %d writes, want at most %d", got, want.writes)
	}
	if got := j.told(); got != want.events {
		j.add("I9", "without a fault there were %d Events, want %d: %v", got, want.events, j.Events)
	}
}

// told is how many Events there were.
func (e Evidence) told() int {
	n := 0
	for _, event := range e.Events {
		n += event.Count
	}
	return n
}
