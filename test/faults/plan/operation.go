package plan

import "slices"

// Operation is what a user does to a custom resource.
type Operation string

// The operations.
const (
	Create Operation = "create"
	Update Operation = "update"
	Delete Operation = "delete"
	// DeleteRunning deletes a CR while its first run executes.
	DeleteRunning Operation = "delete-running"
	// Recreate deletes a CR and creates another of its name when it is gone.
	Recreate Operation = "recreate"
	// Retry creates a CR whose first two runs fail.
	Retry Operation = "retry"
	// DeleteRetry deletes a CR whose finalizer fails twice.
	DeleteRetry Operation = "delete-retry"
	// Repair changes a CR whose runs have failed again and again. The first run after
	// that fails once more.
	Repair Operation = "repair"
	// Storm creates a CR whose first runs fail. Others change its annotations all the time: each
	// change triggers a run.
	Storm Operation = "storm"
	// PlainDeleteRunning and PlainRecreateRunning delete a CR, and create another of
	// its name at once, while its first run executes. Their watch has no finalizer.
	PlainDeleteRunning   Operation = "plain-delete-running"
	PlainRecreateRunning Operation = "plain-recreate-running"
)

// Course is what an operation is, and what it comes to without a fault: more is done
// for nothing, and less is forgotten.
type Course struct {
	// Gone is true when the operation leaves no CR, DuringRun when it goes on while a
	// run executes, Plain when the watch has no finalizer.
	Gone, DuringRun, Plain bool
	// Runs are those of the content and of the finalizer, by resource.
	Runs [][2]int
	// Steps are the writes to the resources at most, Events all Events.
	Steps, Events int

	// principal is true for an operation whose product with all points and faults is
	// whole.
	principal bool
	// writes are the kinds of writes that the operation comes to, in their order.
	writes []Point
}

// operations are all operations, in the order of their plans.
func operations() []Operation {
	return []Operation{Create, Update, Delete, DeleteRunning, Recreate, Retry, DeleteRetry, Repair, Storm, PlainDeleteRunning, PlainRecreateRunning}
}

// Course returns what is known of the operation.
func (o Operation) Course() Course {
	return map[Operation]Course{
		Create: {Runs: [][2]int{{1, 0}}, Steps: 3, Events: 1, principal: true, writes: []Point{FinalizerAdd, StatusRunning, StatusResult, Event}},
		Update: {Runs: [][2]int{{2, 0}}, Steps: 5, Events: 1, principal: true, writes: []Point{StatusRunning, StatusResult}},
		// The object goes with its finalizer, and gets no result before.
		Delete: {Gone: true, Runs: [][2]int{{1, 1}}, Steps: 5, Events: 2, principal: true, writes: []Point{StatusRunning, FinalizerRemove, Event}},
		DeleteRunning: {Gone: true, DuringRun: true, Runs: [][2]int{{1, 1}}, Steps: 5, Events: 2, principal: true,
			writes: []Point{FinalizerAdd, StatusRunning, StatusResult, FinalizerRemove, Event}},
		Recreate: {Runs: [][2]int{{1, 1}, {1, 0}}, Steps: 8, Events: 3, principal: true,
			writes: []Point{FinalizerRemove, FinalizerAdd, StatusRunning, StatusResult, Event}},
		// Two failures for different reasons.
		Retry:       {Runs: [][2]int{{3, 0}}, Steps: 7, Events: 3, writes: []Point{FinalizerAdd, StatusRunning, StatusResult, Event}},
		DeleteRetry: {Gone: true, Runs: [][2]int{{1, 3}}, Steps: 9, Events: 4, writes: []Point{StatusRunning, StatusResult, FinalizerRemove, Event}},
		// The same failure again and again, and once more after the repair.
		Repair: {Runs: [][2]int{{6, 0}}, Steps: 13, Events: 2, writes: []Point{StatusRunning, StatusResult, Event}},
		// No run more than the back-off allows.
		Storm:                {Runs: [][2]int{{5, 0}}, Steps: 11, Events: 2, writes: []Point{StatusRunning, StatusResult}},
		PlainDeleteRunning:   {Gone: true, DuringRun: true, Plain: true, Runs: [][2]int{{1, 0}}, Steps: 1, writes: []Point{StatusRunning}},
		PlainRecreateRunning: {DuringRun: true, Plain: true, Runs: [][2]int{{1, 0}, {1, 0}}, Steps: 3, Events: 1, writes: []Point{StatusRunning, StatusResult}},
	}[o]
}

// points are the writes of an operation, and the phases of its run that it comes to.
func (o Operation) points() []Point {
	phases := Phases()
	switch {
	case o == Delete: // The CR goes with its finalizer, and no status is read before that.
		phases = slices.DeleteFunc(phases, func(p Point) bool { return p == BeforeStatus })
	case o.Course().Plain: // The run does not come to its end.
		phases = []Point{DirectoryMade, InputsWritten, Spawned, FirstEvent, MidTask}
	}
	return append(o.Course().writes, phases...)
}
