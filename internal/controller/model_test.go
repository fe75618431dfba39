package controller

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

var (
	modelSeed  = flag.Uint64("model-seed", 0, "the one seed that the model is played with")
	modelGames = flag.Uint64("model-games", 250, "with how many seeds the model is played")
)

// TestEveryChangeLeadsToARun plays one name at random: its users, a watch that
// lags, slots that come late, reads and writes that are slow or fail, runs of any
// outcome, managers that stop, die, and start with a list that is old. When all is
// well again the CR's last change must have run and be reported, a CR that is gone
// must be forgotten, and nothing go on by itself. No run may begin for nothing, or
// before the throttle allows it.
func TestEveryChangeLeadsToARun(t *testing.T) {
	runs := 0
	for seed := uint64(1); seed <= *modelGames && !t.Failed(); seed++ {
		if *modelSeed != 0 {
			seed = *modelSeed
		}
		synctest.Test(t, func(t *testing.T) {
			g := newGame(t, seed)
			g.play()
			g.end()
			runs += len(g.runs)
			if t.Failed() {
				t.Logf("-model-seed=%d, watch with finalizer %v, selector %q:\n%s", seed, g.watch.Finalizer != nil, g.watch.Selector, strings.Join(g.story, "\n"))
			}
		})
		if *modelSeed != 0 {
			break
		}
	}
	t.Logf("%d runs", runs)
}

// game is one play.
type game struct {
	t      *testing.T
	rng    *rand.Rand
	watch  watches.Watch
	server *apiServer
	boss   *boss
	bosses int

	mu      sync.Mutex
	story   []string
	runs    []*ran
	granted *unstructured.Unstructured // the CR of the run that begins
	removed []string
	easy    bool // runs succeed at once
	drifts  int  // of related objects, of which this manager was told
}

// ran is a run.
type ran struct {
	facts    facts
	deleting bool
	drifts   int
	boss     int
	failures int       // in a row before it, with the same spec
	began    time.Time // and when it ended
	ended    time.Time
	unasked  bool
	token    bool            // It needs one, because it is not due either.
	ctx      context.Context //nolint:containedctx // To see whether it was ended.
	end      chan runner.Result
	over     bool
	result   runner.Result
}

func newGame(t *testing.T, seed uint64) *game {
	t.Helper()
	g := &game{t: t, rng: rand.New(rand.NewPCG(seed, 1)), server: newAPIServer()}
	g.watch = []watches.Watch{plainWatch(), finalizerWatch(), selectorWatch()}[g.rng.IntN(3)]
	g.start()
	return g
}

func (g *game) logf(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.story = append(g.story, time.Now().Format("04:05.000")+" "+fmt.Sprintf(format, args...))
}

// fail notes what must not be.
func (g *game) fail(format string, args ...any) {
	g.logf("WRONG: "+format, args...)
	g.t.Errorf(format, args...)
}

func (g *game) start() {
	behind := 0
	if n := len(g.server.history); n > 0 && g.rng.IntN(3) == 0 {
		behind = g.rng.IntN(n)
	}
	g.bosses++
	g.drifts = 0
	g.boss = newBoss(g.server, g.watch, g, accessFunc(g.grant))
	g.boss.list(g.t.Context(), behind)
	g.logf("manager %d starts, %d moments behind; settled: %v", g.bosses, behind, g.boss.settled != nil)
}

func (g *game) grant(cr *unstructured.Unstructured) ([]byte, func(), error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.granted = cr
	return []byte("config"), func() {}, nil
}

// Run implements engine.Runner: runs end as the game wants.
func (g *game) Run(ctx context.Context, spec runner.Spec, _ func(jobevent.Event)) runner.Result {
	run, easy := g.began(ctx)
	if easy {
		run.result = g.outcome(0)
	} else {
		select {
		case run.result = <-run.end:
		case <-ctx.Done():
			run.result = runner.Result{Outcome: content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled}}
		}
	}
	g.logf("  the run of %s ends: %s", spec.UID, run.result.Outcome.Verdict)
	g.mu.Lock()
	defer g.mu.Unlock()
	run.over, run.ended = true, time.Now()
	return run.result
}

// Remove implements engine.Runner.
func (g *game) Remove(uid string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.removed = append(g.removed, uid)
	return nil
}

func (g *game) began(ctx context.Context) (*ran, bool) {
	g.mu.Lock()
	cr, easy, drifts := g.granted, g.easy, g.drifts
	g.mu.Unlock()
	run := &ran{began: time.Now(), facts: g.server.factsOf(cr), deleting: cr.GetDeletionTimestamp() != nil, drifts: drifts, boss: g.bosses, ctx: ctx, end: make(chan runner.Result)}
	g.logf("  a run of version %s begins: %+v, deleting %v", cr.GetResourceVersion(), run.facts, run.deleting)
	gained := g.boss.gained.Load()
	if run.unasked = !gained && g.isUnasked(run); run.unasked {
		run.failures = g.last().failuresWith()
		run.token = run.failures == 0 && g.last().result.Summary.RequeueAfter == 0
	}
	if !g.justified(run) {
		g.fail("a run began for nothing")
	}
	g.obeysTheThrottle(run)
	if run.facts.paused && !run.deleting {
		g.fail("a run began in a pause")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.runs = append(g.runs, run)
	return run, easy
}

// justified reports whether there is a reason for the run.
func (g *game) justified(run *ran) bool {
	last := g.last()
	switch {
	case last != nil && last.boss == run.boss:
		again := last.result.Outcome.Verdict == content.Failed || last.result.Summary.RequeueAfter > 0 || last.drifts != run.drifts
		return again || last.facts != run.facts || last.deleting != run.deleting || g.boss.gained.CompareAndSwap(true, false)
	case g.boss.settled != nil:
		return g.server.factsOf(g.boss.settled) != run.facts || run.drifts > 0 || g.boss.gained.Load()
	}
	return true
}

// isUnasked reports whether nobody asked for the run: its own CR's run wrote what is new, or a
// related object drifted, or it is due.
func (g *game) isUnasked(run *ran) bool {
	last := g.last()
	if last == nil || last.boss != run.boss || last.deleting != run.deleting {
		return false
	}
	before, now := last.facts, run.facts
	before.generation, now.generation = 0, 0
	return before == now
}

// failuresWith counts the failures in a row up to and with the run.
func (r *ran) failuresWith() int {
	if r.result.Outcome.Verdict != content.Failed {
		return 0
	}
	return r.failures + 1
}

// obeysTheThrottle checks that a CR that fails pauses as long as its back-off says, and that one
// that does not is not run too often.
func (g *game) obeysTheThrottle(run *ran) {
	if !run.unasked {
		return
	}
	g.mu.Lock()
	runs := slices.Clone(g.runs)
	g.mu.Unlock()
	last := g.last()
	if pause := run.began.Sub(last.ended); run.failures > 0 && pause < backoffAfter(run.failures, 20*time.Second) {
		g.fail("after %d failures a run began after %s", run.failures, pause)
	}
	const most = bucketSize + 6 // After the bucket pauses of 1, 2, 4, 8, 16 and 20 s.
	lately := 0
	for _, r := range runs {
		if r.token && r.boss == run.boss && r.facts.uid == run.facts.uid && run.began.Sub(r.began) < time.Minute {
			lately++
		}
	}
	if lately > most {
		g.fail("%d runs in a minute that nobody asked for", lately)
	}
}

func (g *game) last() *ran {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.runs) == 0 {
		return nil
	}
	return g.runs[len(g.runs)-1]
}

// outcome is success for 0, another for other numbers.
func (g *game) outcome(kind int) runner.Result {
	result := succeed(context.Background(), runner.Spec{})
	switch kind {
	case 1, 2:
		result = fail(context.Background(), runner.Spec{})
	case 3:
		result.Summary.RequeueAfter = 3 * time.Second
	}
	result.Summary.Completion = time.Now()
	return result
}

func (g *game) play() {
	for range 20 + g.rng.IntN(60) {
		g.move()
		synctest.Wait()
		g.check()
	}
}

// move does one thing at random.
func (g *game) move() {
	moves := []func(){
		g.user, g.user, g.user, g.deliver, g.deliver, g.deliver, g.admit, g.admit, g.endRun, g.endRun, g.slow, g.server.hurry, g.trouble, g.calm, g.pass, g.pass, g.drift, g.storm, g.writeOwn,
	}
	if g.rng.IntN(12) == 0 {
		g.restart()
		return
	}
	moves[g.rng.IntN(len(moves))]()
}

func (g *game) user() {
	cr := g.server.now()
	on := map[string]string{"on": "yes"}
	if cr == nil {
		var others []string
		if g.rng.IntN(4) == 0 {
			others = []string{"x.io/y"}
		}
		if g.rng.IntN(4) == 0 {
			on = nil
		}
		g.server.create(on, others...)
		g.logf("created: %s", g.server.now().GetUID())
		return
	}
	deleting := cr.GetDeletionTimestamp() != nil
	switch g.rng.IntN(6) {
	case 0:
		g.server.advance(false)
		g.logf("new generation")
	case 1:
		g.server.annotate(requestedAnnotation, cr.GetResourceVersion())
		g.logf("annotated")
	case 2:
		if !deleting {
			g.server.remove()
			g.logf("deleted")
		}
	case 3:
		g.server.label(on)
		g.logf("labeled anew: %v", g.server.labels())
	case 4:
		if deleting {
			g.letGo()
		}
	case 5:
		g.logf("paused: %v", g.server.pause())
	}
}

// letGo takes the finalizer of others away.
func (g *game) letGo() {
	if cr := g.server.now(); cr != nil && slices.Contains(cr.GetFinalizers(), "x.io/y") {
		g.server.change(func(cr *unstructured.Unstructured) {
			cr.SetFinalizers(slices.DeleteFunc(cr.GetFinalizers(), func(f string) bool { return f == "x.io/y" }))
		})
		g.logf("others let go")
	}
}

// deliver lets the informer catch up, if only in part.
func (g *game) deliver() {
	n := g.boss.view.behind()
	if n == 0 {
		return
	}
	if g.rng.IntN(2) == 0 {
		n = 1 + g.rng.IntN(n)
	}
	relist := g.rng.IntN(4) == 0
	g.logf("%d moments are told, by a list: %v", n, relist)
	g.boss.view.advance(g.t.Context(), n, relist)
}

// drift changes a related object of the CR. No run may begin between the count and the event.
func (g *game) drift() {
	synctest.Wait()
	g.mu.Lock()
	g.drifts++
	g.mu.Unlock()
	if !g.boss.drift() {
		g.mu.Lock()
		g.drifts--
		g.mu.Unlock()
		return
	}
	g.logf("a related object drifted")
}

// storm lets a related object drift again and again, as soon as the CR has run.
func (g *game) storm() {
	kind := []int{0, 1}[g.rng.IntN(2)]
	for range 2 * bucketSize {
		g.drift()
		g.writeOwn()
		g.admit()
		synctest.Wait()
		if run := g.last(); run != nil && !run.over {
			select {
			case run.end <- g.outcome(kind):
			default:
			}
		}
		synctest.Wait()
		<-time.After(time.Duration(g.rng.IntN(1000)) * time.Millisecond)
	}
}

// writeOwn makes a new generation by the CR's run that is at work.
func (g *game) writeOwn() {
	run, cr := g.last(), g.server.now()
	if run == nil || run.over || run.boss != g.bosses || cr == nil || cr.GetUID() != run.facts.uid || cr.GetDeletionTimestamp() != nil {
		return
	}
	written := g.server.advance(true)
	g.boss.reconciler.Writers.Wrote(Writer{UID: cr.GetUID(), Name: "Widget ns/w"}, &g.watch, written)
	g.logf("its own run made generation %d", written.GetGeneration())
}

func (g *game) admit() {
	select {
	case g.boss.gates.admit <- struct{}{}:
		g.logf("admitted")
	default:
	}
}

func (g *game) endRun() {
	run := g.last()
	if run == nil {
		return
	}
	select {
	case run.end <- g.outcome(g.rng.IntN(5)):
	default:
	}
}

func (g *game) slow() {
	when := []string{"before", "after"}[g.rng.IntN(2)]
	g.server.set(func(s *apiServer) { s.slow = when })
	g.logf("reads are slow %s they see", when)
}

func (g *game) trouble() {
	kind := g.rng.IntN(5)
	g.server.set(func(s *apiServer) {
		switch kind {
		case 0:
			s.readError = apierrors.NewInternalError(errNotNow)
		case 1:
			s.readError = apierrors.NewForbidden(schema.GroupResource{}, "w", errNotNow)
		case 2:
			s.writeError = apierrors.NewForbidden(schema.GroupResource{}, "w", errNotNow)
		case 3:
			s.writeError = apierrors.NewInternalError(errNotNow)
		case 4:
			s.writeError, s.lossy = apierrors.NewInternalError(errNotNow), true
		}
	})
	g.boss.gates.set(false, g.rng.IntN(2) == 0)
	g.logf("trouble %d", kind)
}

func (g *game) calm() {
	g.server.set(func(s *apiServer) { s.readError, s.writeError, s.lossy = nil, nil, false })
	g.logf("calm")
}

func (g *game) pass() { <-time.After(time.Duration(g.rng.IntN(5000)) * time.Millisecond) }

func (g *game) restart() {
	kill := g.rng.IntN(2) == 0
	g.logf("the manager ends, killed: %v", kill)
	if !kill {
		g.calm() // Else it would try for long to write.
	}
	g.boss.end(kill)
	g.start()
}

// check looks at what must hold at any time when nothing moves.
func (g *game) check() {
	g.isCounted(uncounted)
	cr := g.boss.view.cached
	idle := cr == nil || cr.GetDeletionTimestamp() != nil && !holdsFinalizer(&g.watch, cr)
	if cr == nil && g.boss.gates.waits() && g.boss.informed() {
		g.fail("it waits for a slot for what it knows to be gone")
	}
	if cr != nil && paused(&g.watch, cr) && isWatched(&g.watch, cr) && g.boss.gates.waits() && g.boss.informed() {
		g.fail("it waits for a slot in a pause")
	}
	run := g.last()
	if run == nil || run.over || run.boss != g.bosses {
		return
	}
	same := cr != nil && cr.GetUID() == run.facts.uid
	if slices.Contains(g.boss.view.uids, run.facts.uid) && (!same || idle) && run.ctx.Err() == nil {
		g.fail("the run of what it knows to be gone goes on")
	}
}

// end lets everything be well, and looks at what came out.
func (g *game) end() {
	g.logf("all is well from here on")
	g.calm()
	g.mu.Lock()
	g.easy = true
	g.mu.Unlock()
	g.boss.gates.set(true, false)
	g.server.hurry()
	if cr := g.server.now(); cr != nil && cr.GetDeletionTimestamp() != nil {
		g.letGo()
	}
	if g.rng.IntN(2) == 0 {
		g.storm() // The last of what drifts has to be seen as well.
	}
	for range 5 {
		g.admit()
		synctest.Wait()
		if run := g.last(); run != nil {
			select {
			case run.end <- g.outcome(0):
			default:
			}
		}
		synctest.Wait()
		g.boss.view.advance(g.t.Context(), g.boss.view.behind(), false)
		<-time.After(time.Minute)
	}
	<-time.After(time.Hour) // In which it is seen that nothing is slowed down any more.
	attempts := g.boss.attempts.Load()
	<-time.After(time.Hour)
	if g.boss.attempts.Load() != attempts {
		g.fail("attempts go on: %d in an hour", g.boss.attempts.Load()-attempts)
	}
	if cr := g.server.now(); cr != nil {
		g.present(cr)
	} else {
		g.absent()
	}
	g.boss.end(false)
}

func (g *game) present(cr *unstructured.Unstructured) {
	if cr.GetDeletionTimestamp() != nil {
		g.fail("it is still there: %v", cr.GetFinalizers())
		return
	}
	if !isWatched(&g.watch, cr) {
		if all := g.boss.reconciler.Resources(); !maps.Equal(all, noPhases()) {
			g.fail("it is not the watch's, and counted: %v", all)
		}
		return
	}
	conditions := fmt.Sprint(cr.Object["status"])
	if strings.Contains(conditions, "reason:Paused") != paused(&g.watch, cr) {
		g.fail("paused is %v, reported is %s", paused(&g.watch, cr), conditions)
	}
	if paused(&g.watch, cr) {
		g.isCounted(PhasePaused)
		return
	}
	g.isCounted(PhaseSucceeded)
	if strings.Contains(conditions, "SlowedDown") {
		g.fail("it is slowed down for ever: %s", conditions)
	}
	want := g.server.factsOf(cr)
	got := facts{}
	if run := g.last(); run != nil {
		got = run.facts
	}
	got.gains, want.gains, got.resumes, want.resumes = 0, 0, 0, 0
	if got != want {
		g.fail("it is %+v, and %+v has run", want, got)
	}
	if run := g.last(); run != nil && run.boss == g.bosses && run.drifts != g.drifts {
		g.fail("related objects drifted %d times, and the last run has seen %d", g.drifts, run.drifts)
	}
	observed, _, _ := unstructured.NestedInt64(cr.Object, "status", "observedGeneration")
	if observed != cr.GetGeneration() || !strings.Contains(conditions, "Last reconciliation succeeded") {
		g.fail("generation %d is reported of %d: %s", observed, cr.GetGeneration(), conditions)
	}
}

// isCounted checks that the CR is counted once in the phase, and in no other. uncounted: at most
// once, in any.
func (g *game) isCounted(want Phase) {
	all := g.boss.reconciler.Resources()
	number := 0
	for _, n := range all {
		number += n
		if n < 0 || number > 1 || want != uncounted && all[want] != 1 {
			g.fail("want one in phase %q, counted are %v", want, all)
			return
		}
	}
}

func (g *game) absent() {
	if all := g.boss.reconciler.Resources(); !maps.Equal(all, noPhases()) {
		g.fail("it is counted: %v", all)
	}
	states := &g.boss.reconciler.states
	if len(states.byName) > 0 {
		g.fail("it is remembered: %+v", states.byName[request.NamespacedName])
	}
	uids := map[types.UID]bool{}
	for _, run := range g.runs {
		uids[run.facts.uid] = run.boss == g.bosses
	}
	for uid, ours := range uids {
		if ours && !slices.Contains(g.removed, string(uid)) {
			g.fail("the directory of %s is there", uid)
		}
	}
}
