// Package plan lists the fault plans: which fault strikes at which point of which
// operation. A plan is a value with a stable name, "update/status-result/lost",
// and the lists are products of their dimensions, less what cannot happen.
//
// The package is pure: it does not know how an operation is performed, how a
// point is found, or how a fault is made.
package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Plan is one fault plan. The zero value of Point and Fault is a plan without a
// fault, whose end is what the others are compared with.
type Plan struct {
	Operation Operation
	Point     Point
	Fault     Fault
}

// String is the name of the plan.
func (p Plan) String() string {
	if p.Fault == "" {
		return string(p.Operation) + "/without/fault"
	}
	return strings.Join([]string{string(p.Operation), string(p.Point), string(p.Fault)}, "/")
}

// Baseline is the plan of the same operation without a fault.
func (p Plan) Baseline() Plan { return Plan{Operation: p.Operation} }

// Point is when a fault strikes.
type Point string

// The points that are writes of the manager, the first of their kind in an
// operation.
const (
	FinalizerAdd    Point = "finalizer-add"
	StatusRunning   Point = "status-running"
	StatusResult    Point = "status-result"
	FinalizerRemove Point = "finalizer-remove"
	Event           Point = "event"
)

// The points that are phases of the run that an operation is about.
const (
	DirectoryMade Point = "directory-made"
	InputsWritten Point = "inputs-written"
	Spawned       Point = "spawned"
	FirstEvent    Point = "first-event"
	MidTask       Point = "mid-task"
	Stats         Point = "stats"
	Exited        Point = "exited"
	// BeforeStatus is the live read that precedes the write of the result.
	BeforeStatus Point = "before-status"
)

// Phases are the points that are phases of a run, in their order.
func Phases() []Point {
	return []Point{DirectoryMade, InputsWritten, Spawned, FirstEvent, MidTask, Stats, Exited, BeforeStatus}
}

// Phase is true for a point that is a phase of a run.
func (p Point) Phase() bool { return slices.Contains(Phases(), p) }

// Fault is what strikes.
type Fault string

// The faults. At a write they meet this write (and its repetitions, for as long
// as they last), at a phase every request from then on for a while.
const (
	// CrashBefore kills the manager before the write reaches the API server, or
	// while the run stands still in its phase; another manager starts at once.
	CrashBefore Fault = "crash-before"
	// CrashAfter kills it when the write is applied, or when the run has gone on.
	CrashAfter Fault = "crash-after"
	// Conflict is 409, Throttled 429 with Retry-After, Internal 500, Unavailable 503.
	Conflict    Fault = "409"
	Throttled   Fault = "429"
	Internal    Fault = "500"
	Unavailable Fault = "503"
	// Forbidden is 403, which a client does not try again by itself.
	Forbidden Fault = "403"
	// Timeout is 504 after a while.
	Timeout Fault = "timeout"
	// Reset breaks the connection, Lost does so after the request was applied.
	Reset Fault = "reset"
	Lost  Fault = "lost"
	// Away takes the API server away altogether.
	Away Fault = "away"
	// Frozen lets the API server take every request and answer none, for longer than the
	// manager waits for an answer. The requests arrive at the end.
	Frozen Fault = "frozen"
	// Race lets another writer change the object between the manager's read and its
	// write.
	Race Fault = "race"
	// Hidden hides what watches tell, and has them start again later; Delayed holds it
	// back. In that time the user changes the CR, where it is not being deleted.
	Hidden  Fault = "hidden"
	Delayed Fault = "delayed"
	// Stale kills the manager after the write, or in the phase; the next one sees
	// the kind as it was before the operation, for a while.
	Stale Fault = "stale"
)

// Faults are all faults.
func Faults() []Fault {
	return []Fault{CrashBefore, CrashAfter, Conflict, Throttled, Internal, Unavailable, Forbidden, Timeout, Reset, Lost, Away, Frozen, Race, Hidden, Delayed, Stale}
}

// Crash is true for a fault that kills the manager.
func (f Fault) Crash() bool {
	return slices.Contains([]Fault{CrashBefore, CrashAfter, Stale}, f)
}

// Blind is true for a fault during which the manager does not see what happens.
func (f Fault) Blind() bool { return f == Hidden || f == Delayed }

// possible leaves out what does not exist.
func possible(p Plan) bool {
	switch p.Fault {
	case Frozen: // It lasts long, and what is tried again is the result.
		return slices.Contains([]Operation{Create, Update}, p.Operation) && slices.Contains([]Point{StatusResult, Exited}, p.Point)
	case Race, Forbidden:
		return !p.Point.Phase() && p.Point != Event
	case Conflict:
		return p.Point != Event && sensible(p)
	default:
		return sensible(p)
	}
}

// sensible leaves out what other plans show as well: the phases of the further
// operations differ in who ends the run, and when.
func sensible(p Plan) bool {
	return p.Operation.Course().principal || !p.Point.Phase() || p.Fault.Crash() || p.Fault.Blind() || p.Fault == Away
}

// Baselines lists the plans without a fault.
func Baselines() []Plan {
	var all []Plan
	for _, o := range operations() {
		all = append(all, Plan{Operation: o})
	}
	return all
}

// All lists every plan but the baselines.
func All() []Plan {
	var all []Plan
	for _, o := range operations() {
		for _, point := range o.points() {
			for _, fault := range Faults() {
				if p := (Plan{o, point, fault}); possible(p) {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// Select returns the plans whose name matches the expression. It is an error if none
// does.
func Select(from []Plan, expression string) ([]Plan, error) {
	matches, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("select plans: %w", err)
	}
	chosen := slices.DeleteFunc(slices.Clone(from), func(p Plan) bool { return !matches.MatchString(p.String()) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no plan has a name that matches %q; a name is for example %q", expression, from[0])
	}
	return chosen, nil
}
