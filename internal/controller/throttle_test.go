package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

const drift = causeRelated + "Secret ns/s changed"

func TestWhatTheThrottleHoldsBack(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const pause = time.Minute
	soon := now.Add(pause)
	watch := finalizerWatch()
	ours := withFinalizers(ourFinalizer)
	// failed is the state after a failed run for the CR, which is due after the pause.
	failed := func(cr *unstructured.Unstructured) known {
		return known{state: state{version: versionOf(&watch, cr), last: &conclusion{Result: content.Result{Outcome: content.Outcome{Verdict: content.Failed}}}, due: soon}}
	}
	// emptied is the state after a success with an empty bucket.
	emptied := func(cr *unstructured.Unstructured) known {
		return known{state: state{version: versionOf(&watch, cr), last: &conclusion{}, throttle: throttle{taken: bucketSize, opens: soon}}}
	}
	with := func(st known, change func(*known)) known { change(&st); return st }
	isDirty := func(why string) func(*known) { return func(st *known) { st.dirty = why } }
	requested := withAnnotations(map[string]string{requestedAnnotation: "now"})
	annotated := withAnnotations(map[string]string{verbosityAnnotation: "2"})
	own, other := writerOf{own: true}, writerOf{Writer: Writer{Name: "Widget ns/other"}}
	for name, test := range map[string]struct {
		cr     *unstructured.Unstructured
		state  known
		writer writerOf
		want   decision
	}{
		"a failing CR that waits for an object runs at its change": {widget(ours), with(failed(widget(ours)), func(st *known) { st.dirty, st.last.WaitingForObject = drift, true }), writerOf{}, decision{run, bySelfOrChild, time.Time{}, true}},
		"a failing CR waits for its back-off, whatever drifts":     {widget(ours), with(failed(widget(ours)), isDirty(drift)), writerOf{}, decision{throttled, bySelfOrChild, soon, false}},
		"or is annotated":                                          {widget(ours, annotated), failed(widget(ours)), writerOf{}, decision{throttled, bySelfOrChild, soon, false}},
		"or takes its finalizer away":                              {widget(), failed(widget()), writerOf{}, decision{throttled, bySelfOrChild, soon, false}},
		"or is written by its own run":                             {widget(ours, withGeneration(2)), failed(widget(ours)), own, decision{throttled, bySelfOrChild, soon, false}},
		"or requests a run by its own run":                         {widget(ours, requested), failed(widget(ours)), own, decision{throttled, bySelfOrChild, soon, false}},
		"it runs when it is due":                                   {widget(ours), with(failed(widget(ours)), func(st *known) { st.dirty, st.due = drift, now }), writerOf{}, decision{run, scheduled, time.Time{}, false}},
		"somebody's new spec does not wait":                        {widget(ours, withGeneration(2)), failed(widget(ours)), writerOf{}, decision{run, byUser, time.Time{}, false}},
		"nor a request":                                            {widget(ours, requested), failed(widget(ours)), writerOf{}, decision{run, byUser, time.Time{}, false}},
		"nor a deletion":                                           {widget(ours, deleting), failed(widget(ours)), writerOf{}, decision{finalize, byUser, time.Time{}, false}},
		"a request that is gone is none":                           {widget(ours), failed(widget(ours, requested)), writerOf{}, decision{throttled, bySelfOrChild, soon, false}},
		"a spec by another CR's run does not wait for the failure": {widget(ours, withGeneration(2)), failed(widget(ours)), other, decision{run, byOtherCR, time.Time{}, true}},
		"nor the end of a pause":                                   {widget(ours), with(failed(widget(ours)), isDirty(causeResumed)), writerOf{}, decision{run, byOtherCR, time.Time{}, true}},
		"nor the labels of the selector":                           {widget(ours), with(failed(widget(ours)), isDirty(causeSelected)), writerOf{}, decision{run, byOtherCR, time.Time{}, true}},
		"a finalizer that fails is not hurried by an annotation":   {widget(ours, deleting, annotated), failed(widget(ours, deleting)), writerOf{}, decision{throttled, bySelfOrChild, soon, false}},
		"nor by a spec of its own run":                             {widget(ours, deleting, withGeneration(3)), failed(widget(ours, deleting)), own, decision{throttled, bySelfOrChild, soon, false}},
		"a CR that is refused has not run, and waits for nothing":  {widget(ours, annotated), with(failed(widget(ours)), func(st *known) { st.last.refused, st.due = true, time.Time{} }), writerOf{}, decision{run, bySelfOrChild, time.Time{}, true}},
		"with an empty bucket a CR waits although it succeeds":     {widget(ours), with(emptied(widget(ours)), isDirty(drift)), writerOf{}, decision{throttled, bySelfOrChild, soon, true}},
		"also with what its own run wrote":                         {widget(ours, withGeneration(2)), emptied(widget(ours)), own, decision{throttled, bySelfOrChild, soon, true}},
		"also with what another CR's run wrote":                    {widget(ours, withGeneration(2)), emptied(widget(ours)), other, decision{throttled, byOtherCR, soon, true}},
		"also when it is resumed again and again":                  {widget(ours), with(emptied(widget(ours)), isDirty(causeResumed)), writerOf{}, decision{throttled, byOtherCR, soon, true}},
		"also when a run of it came to no conclusion":              {widget(ours), with(emptied(widget(ours)), func(st *known) { st.last = nil }), writerOf{}, decision{throttled, bySelfOrChild, soon, true}},
		"its period does not wait":                                 {widget(ours), with(emptied(widget(ours)), func(st *known) { st.due = now }), writerOf{}, decision{run, scheduled, time.Time{}, false}},
		"nor somebody's spec":                                      {widget(ours, withGeneration(2)), emptied(widget(ours)), writerOf{}, decision{run, byUser, time.Time{}, false}},
		"nor a request of somebody":                                {widget(ours, requested), emptied(widget(ours)), writerOf{}, decision{run, byUser, time.Time{}, false}},
		"when the pause is over it runs":                           {widget(ours), with(emptied(widget(ours)), func(st *known) { st.dirty, st.throttle.opens = drift, now }), writerOf{}, decision{run, bySelfOrChild, now, true}},
		"the first run of an object waits for nothing":             {widget(ours), with(known{state: state{version: version{uid: "uid-1"}}}, isDirty(drift)), other, decision{run, byUser, time.Time{}, false}},
		"what nothing triggers is not throttled":                   {widget(ours), emptied(widget(ours)), writerOf{}, decision{step: upToDate}},
	} {
		t.Run(name, func(t *testing.T) {
			a := test.state.attempt(&watch, test.cr)
			a.writer = test.writer
			if diff := cmp.Diff(test.want, decide(&a.observation, &a.state, now), cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// loop plays a CR that is triggered again as soon as its run has ended, until the time is over.
// It returns when its runs began.
func loop(b *throttle, from, until time.Time) (began []time.Time) {
	const limit, runTime = 5 * time.Minute, 500 * time.Millisecond
	for now := from; now.Before(until); {
		if b.since.IsZero() && now.Before(b.opens) {
			b.since = now
		}
		if now.Before(b.opens) {
			now = b.opens
			continue
		}
		began = append(began, now)
		b.begin(bySelfOrChild, now, limit)
		now = now.Add(runTime)
		b.end(now, limit)
	}
	return began
}

func TestALoopSlowsDownToTheLongestPause(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := &throttle{}
	began := loop(b, start, start.Add(time.Hour))
	inFirstMinute := 0
	for _, at := range began {
		if at.Sub(start) < time.Minute {
			inFirstMinute++
		}
	}
	if inFirstMinute < bucketSize || inFirstMinute > 2*bucketSize {
		t.Errorf("%d runs in the first minute", inFirstMinute)
	}
	if len(began) > 30 {
		t.Errorf("%d runs in an hour", len(began))
	}
	last := began[len(began)-1].Sub(began[len(began)-2])
	if last < 5*time.Minute {
		t.Errorf("at last a run each %s", last)
	}
	t.Logf("%d runs in the first minute, %d in an hour", inFirstMinute, len(began))
}

func TestABucketFillsInQuietTimes(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const limit = 5 * time.Minute
	t.Run("a trigger a minute is never throttled", func(t *testing.T) {
		b := &throttle{}
		for now := start; now.Before(start.Add(24 * time.Hour)); now = now.Add(quietTime + time.Second) {
			if now.Before(b.opens) {
				t.Fatalf("throttled after %s", now.Sub(start))
			}
			b.begin(bySelfOrChild, now, limit)
			b.end(now.Add(time.Second), limit)
		}
	})
	t.Run("the time in which a trigger waits is not quiet", func(t *testing.T) {
		b := &throttle{taken: bucketSize + 5, ended: start, opens: start.Add(limit), since: start.Add(time.Second)}
		b.begin(bySelfOrChild, b.opens, limit)
		wantEqual(t, bucketSize+6, b.taken)
	})
	t.Run("nor if another run serves it before its time", func(t *testing.T) {
		b := &throttle{taken: bucketSize + 5, ended: start, since: start.Add(time.Second)}
		b.begin(scheduled, start.Add(limit), limit)
		wantEqual(t, bucketSize+5, b.takenAt(start.Add(limit)))
	})
	t.Run("other runs neither take nor give", func(t *testing.T) {
		b := &throttle{taken: 3, ended: start}
		for _, trigger := range []trigger{byUser, scheduled} {
			b.begin(trigger, start.Add(time.Second), limit)
			b.end(start.Add(2*time.Second), limit)
		}
		wantEqual(t, []any{3, start}, []any{b.taken, b.ended})
	})
	t.Run("it says when it has recovered", func(t *testing.T) {
		b := &throttle{}
		loop(b, start, start.Add(time.Hour))
		at := b.recovers()
		if b.since = (time.Time{}); b.takenAt(at) >= bucketSize || b.takenAt(at.Add(-time.Second)) < bucketSize {
			t.Errorf("%d taken at %s, and %d a second before", b.takenAt(at), at, b.takenAt(at.Add(-time.Second)))
		}
	})
}

// A role works in steps, and runs again when the child of a step is ready.
func TestARoleWithProgressIsNotSlowedDown(t *testing.T) {
	const steps = 2 * bucketSize
	for name, test := range map[string]struct {
		current, want int
	}{
		"each step makes a child Current": {1, steps},
		"none does":                       {0, bucketSize},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
			b.mustReconcile()
			for range steps {
				b.drift()
				b.mailbox().noteCurrent(test.current)
				b.mustReconcile()
			}
			wantEqual(t, 1+test.want, len(b.runner.specs))
		})
	}
}

func TestProgressGivesTokensBack(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := &throttle{taken: bucketSize + 1, ended: now, opens: now.Add(time.Minute)}
	b.progress(1, now)
	wantEqual(t, []any{bucketSize, now.Add(time.Minute)}, []any{b.taken, b.opens})
	b.progress(2, now)
	wantEqual(t, []any{bucketSize - 2, time.Time{}}, []any{b.taken, b.opens})
	b.progress(2*bucketSize, now) // No more than were taken.
	wantEqual(t, []any{0, bucketSize + 1}, []any{b.taken, b.returned})

	loops := 0 // Each run makes a child unready, which then becomes Current.
	for ; b.opens.IsZero(); loops++ {
		b.begin(bySelfOrChild, now, time.Minute)
		b.end(now, time.Minute)
		b.progress(1, now)
	}
	wantEqual(t, maxReturned-1, loops)
	b.begin(byUser, now, time.Minute)
	b.progress(2, now)
	wantEqual(t, bucketSize-2, b.taken)
}

// What quiet time has given back already is not given back again.
func TestProgressOfAQuietCRCostsNothing(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := &throttle{}
	for range 2 * maxReturned {
		now = now.Add(time.Hour)
		b.begin(bySelfOrChild, now, time.Minute)
		b.end(now, time.Minute)
		now = now.Add(2 * quietTime)
		b.progress(1, now)
	}
	wantEqual(t, 0, b.returned)
}

// meter is a Meter that keeps what it was told.
type meter struct{ lines []string }

func (m *meter) TriggerThrottled(_ schema.GroupVersionKind, backoff bool) {
	m.lines = append(m.lines, fmt.Sprintf("throttled, by its back-off: %v", backoff))
}

func (m *meter) SetSlowed(_ schema.GroupVersionKind, number int) {
	m.lines = append(m.lines, fmt.Sprintf("slowed: %d", number))
}

// drift makes the CR dirty as the event of a related object does.
func (b *bench) drift() { b.mailbox().markDirty(drift) }

func TestAFailingCRIsNotHurried(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.runner.run = fail
	pauses := []time.Duration{b.mustReconcile().RequeueAfter}
	for range 3 { // Three drifts during the pause, and then the pause is over.
		for range 3 {
			b.drift()
			b.clock.SetTime(b.clock.Now().Add(time.Millisecond))
			if left := b.mustReconcile().RequeueAfter; left >= pauses[len(pauses)-1] {
				t.Errorf("the pause became longer: %s", left)
			}
		}
		pauses = append(pauses, b.mustReconcileDue().RequeueAfter)
	}
	wantEqual(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}, pauses)
	wantEqual(t, 4, len(b.runner.specs))
	wantEqual(t, "started ns/w generation 1: "+drift, b.journal.lines[len(b.journal.lines)-3])
	wantEqual(t, "", b.mailbox().dirty)
}

// A role that patches its own CR makes a new generation with each run.
func TestAFailingCRIsNotHurriedByItself(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.Writers = NewWriters()
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		b.Writers.Wrote(Writer{UID: "uid-1", Name: "Widget ns/w"}, &b.Watch, b.advance())
		return fail(ctx, spec)
	}
	pauses := []time.Duration{b.mustReconcile().RequeueAfter}
	for range 3 {
		wantEqual(t, pauses[len(pauses)-1], b.mustReconcile().RequeueAfter)
		pauses = append(pauses, b.mustReconcileDue().RequeueAfter)
	}
	wantEqual(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}, pauses)
	wantEqual(t, "started ns/w generation 4: "+causeOwnRun, b.journal.lines[len(b.journal.lines)-3])
	b.advance() // By somebody.
	wantEqual(t, time.Second, b.mustReconcile().RequeueAfter)
}

// advance gives the stored CR a new spec, and returns it.
func (b *bench) advance() *unstructured.Unstructured {
	b.t.Helper()
	cr := b.stored()
	cr.SetGeneration(cr.GetGeneration() + 1)
	if err := b.client.Update(b.t.Context(), cr); err != nil {
		b.t.Fatal(err)
	}
	return b.stored()
}

func TestACRThatTriggersItselfIsSlowedDownAndNamed(t *testing.T) {
	m := &meter{}
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.Meter = m
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		b.drift()
		return succeed(ctx, spec)
	}
	b.mustReconcile()
	for range bucketSize {
		b.mustReconcile()
	}
	wantEqual(t, bucketSize+1, len(b.runner.specs))
	wantEqual(t, []string{"Normal Succeeded The last reconciliation succeeded"}, b.events())
	wantEqual(t, map[string]string{"Running": "True/Successful", "Successful": "True/Successful", "Failure": "False/Successful", "Ready": "True/Successful"}, b.conditions())

	first := b.mustReconcile().RequeueAfter
	wantEqual(t, time.Second, first)
	wantEqual(t, []string{"Warning SlowedDown " + status.MessageSlowed(drift)}, b.events())
	wantEqual(t, "True/TriggeredTooOften", b.conditions()["SlowedDown"])
	wantEqual(t, []string{"throttled, by its back-off: false", "slowed: 1"}, m.lines)
	before := b.stored().GetResourceVersion()
	b.drift()
	b.mustReconcile()
	wantEqual(t, before, b.stored().GetResourceVersion())

	for _, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} { // It goes on, with longer pauses and not a word more.
		b.clock.SetTime(b.state().throttle.opens)
		b.mustReconcile()
		wantEqual(t, want, b.mustReconcile().RequeueAfter)
		wantEqual(t, []string(nil), b.events())
		wantEqual(t, "True/TriggeredTooOften", b.conditions()["SlowedDown"])
	}

	b.runner.run = succeed // And then it ends.
	b.clock.SetTime(b.state().throttle.opens)
	after := b.mustReconcile().RequeueAfter
	if after > 10*time.Minute {
		t.Errorf("nobody looks for %s whether it is over", after)
	}
	b.clock.SetTime(b.clock.Now().Add(after))
	b.mustReconcile()
	wantEqual(t, "", b.conditions()["SlowedDown"])
	wantEqual(t, "slowed: 0", m.lines[len(m.lines)-1])
}

func TestWhatAnEarlierManagerSaidOfALoopGoes(t *testing.T) {
	slowed := map[string]any{"type": "SlowedDown", "status": "True", "reason": "TriggeredTooOften", "message": "m"}
	b := newBench(t, plainWatch(), widget(withStatus(map[string]any{"conditions": []any{slowed}})), interceptor.Funcs{})
	wantEqual(t, immediately, b.mustReconcile().RequeueAfter)
	b.mustReconcile()
	wantEqual(t, "", b.conditions()["SlowedDown"])
	wantEqual(t, 1, len(b.runner.specs))
}

func TestWriters(t *testing.T) {
	watch := plainWatch()
	self, another := Writer{"uid-1", "Widget ns/w"}, Writer{"uid-2", "Widget ns/other"}
	at := func(generation int64, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		return widget(append(changes, withGeneration(generation))...)
	}
	requested := func(value string) func(*unstructured.Unstructured) {
		return withAnnotations(map[string]string{watches.AnsibleAnnotations + requestedSuffix: value})
	}
	data := func(value string) func(*unstructured.Unstructured) {
		return func(cr *unstructured.Unstructured) { cr.Object["data"] = value }
	}
	type write struct {
		by Writer
		cr *unstructured.Unstructured
	}
	for name, test := range map[string]struct {
		last, now *unstructured.Unstructured
		writes    []write
		want      trigger
		wantName  string
	}{
		"a generation of nobody's":                      {at(1), at(2), nil, byUser, ""},
		"one of the CR's own run":                       {at(1), at(2), []write{{self, at(2)}}, bySelfOrChild, self.Name},
		"two of it":                                     {at(1), at(3), []write{{self, at(2)}, {self, at(3)}}, bySelfOrChild, self.Name},
		"one of it after one of somebody's":             {at(1), at(3), []write{{self, at(3)}}, byUser, ""},
		"one of it before one of somebody's":            {at(1), at(3), []write{{self, at(2)}}, byUser, ""},
		"one of another CR's run":                       {at(1), at(2), []write{{another, at(2)}}, byOtherCR, another.Name},
		"one of each":                                   {at(1), at(3), []write{{another, at(2)}, {self, at(3)}}, byOtherCR, another.Name},
		"one of each, the other way round":              {at(1), at(3), []write{{self, at(2)}, {another, at(3)}}, byOtherCR, another.Name},
		"one of a predecessor of the name":              {at(1, withUID("uid-0")), at(2), []write{{self, at(2)}}, byUser, ""},
		"more than a run makes":                         {at(1), at(1000), []write{{self, at(1000)}}, byUser, ""},
		"content of the CR's own run":                   {at(0, data("a")), at(0, data("b")), []write{{self, at(0, data("b"))}}, bySelfOrChild, self.Name},
		"content of nobody's":                           {at(0, data("a")), at(0, data("c")), []write{{self, at(0, data("b"))}}, byUser, ""},
		"a request of the CR's own run":                 {at(1), at(1, requested("a")), []write{{self, at(1, requested("a"))}}, bySelfOrChild, self.Name},
		"a request of somebody's":                       {at(1), at(1, requested("b")), []write{{self, at(1, requested("a"))}}, byUser, ""},
		"a spec of the own run and somebody's request":  {at(1), at(2, requested("b")), []write{{self, at(2)}}, byUser, ""},
		"a generation of a run, and nobody's since":     {at(2), at(2), []write{{self, at(2)}}, byUser, ""},
		"an object that was restored and counts anew":   {at(7), at(2), []write{{self, at(2)}}, byUser, ""},
		"a request that is gone, and a spec of the run": {at(1, requested("a")), at(2), []write{{self, at(2)}}, bySelfOrChild, self.Name},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWriters()
			for _, done := range test.writes {
				w.Wrote(done.by, &watch, done.cr)
			}
			got := w.between(versionOf(&watch, test.last), versionOf(&watch, test.now))
			wantEqual(t, test.want, got.trigger())
			wantEqual(t, test.wantName, got.Name)
		})
	}
	t.Run("a spec that an event has shown before is not that of a run that writes something else", func(t *testing.T) {
		w := NewWriters()
		w.See(&watch, at(2, withVersion("7"))) // Somebody's.
		w.Wrote(self, &watch, at(2, withVersion("8")))
		wantEqual(t, byUser, w.between(versionOf(&watch, at(1)), versionOf(&watch, at(2))).trigger())
		w.See(&watch, at(3, withVersion("9"))) // The run's own, before its answer.
		w.Wrote(self, &watch, at(3, withVersion("9")))
		wantEqual(t, bySelfOrChild, w.between(versionOf(&watch, at(2)), versionOf(&watch, at(3))).trigger())
	})
	t.Run("without a memory everybody is somebody", func(t *testing.T) {
		var w *Writers
		wantEqual(t, byUser, w.between(versionOf(&watch, at(1)), versionOf(&watch, at(2))).trigger())
	})
}

func TestARunWithoutAConclusionTakesATokenToo(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	leads := true
	b.Fence = func() bool { return leads }
	b.runner.run = func(ctx context.Context, spec runner.Spec) runner.Result {
		leads = false
		return succeed(ctx, spec)
	}
	attempts := 3 * bucketSize
	for range attempts {
		leads = true
		b.mustReconcile()
	}
	wantEqual(t, bucketSize+1, len(b.runner.specs))
}

// What a kept-back CR waits for is known to the queue: events do not make it read again.
func TestEventsOfACRThatIsHeldCostNoRead(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.runner.run = fail
	b.mustReconcile()
	wantEqual(t, true, b.mailbox().markDirty(drift))
	b.mustReconcile()
	wantEqual(t, false, b.mailbox().markDirty(drift))
	v := versionOf(&b.Watch, b.stored())
	wantEqual(t, false, b.mailbox().needsRun(v))
	v.generation++
	wantEqual(t, true, b.mailbox().needsRun(v))
	b.mustReconcileDue()
	wantEqual(t, true, b.mailbox().markDirty(drift))
}

func TestARefusalIsNoFailedRun(t *testing.T) {
	b := newBench(t, plainWatch(), widget(withAnnotations(map[string]string{verbosityAnnotation: "loud"})), interceptor.Funcs{})
	b.mustReconcile()
	b.annotate(verbosityAnnotation, "louder")
	b.mustReconcile()
	b.runner.run = fail
	b.annotate(verbosityAnnotation, "1")
	wantEqual(t, time.Second, b.mustReconcile().RequeueAfter)
	wantEqual(t, 1, len(b.runner.specs))
}
