package controller

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/internal/controller/status"
)

// progressPause is the time from a run's start to the first status that names its task,
// and the shortest time from there to the next.
const progressPause = 10 * time.Second

// placePause is the time until the status says where a run executes or which object it waits for.
// Both may be over by then.
const placePause = time.Second

// progress holds the current step of a run.
type progress struct {
	// moved gets a value when the run executes elsewhere, or waits for something else.
	moved chan struct{}
	// enter counts the CR in another phase.
	enter func(Phase)

	mu      sync.Mutex
	now     status.Progress
	changes int // of now
}

func newProgress(enter func(Phase)) *progress {
	return &progress{moved: make(chan struct{}, 1), enter: enter}
}

func (p *progress) begin(task string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setWaits("")
	p.now.Task, p.now.Since = task, now
	p.changes++
}

// placed is content.Job.Located.
func (p *progress) placed(place, waits string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if place != "" && place != p.now.Place || waits != "" && waits != p.now.Waits {
		select {
		case p.moved <- struct{}{}:
		default: // It is to be shown already.
		}
	}
	p.setWaits(waits)
	p.now.Place = place
	p.changes++
}

// setWaits sets the object or event that the run waits for until its content begins.
func (p *progress) setWaits(waits string) {
	switch {
	case waits != "" && p.now.Waits == "":
		p.enter(PhaseWaiting)
	case waits == "" && p.now.Waits != "":
		p.enter(PhaseRunning)
	}
	p.now.Waits = waits
}

func (p *progress) report(generation int64) (report status.Report, changes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return status.Working(generation, p.now), p.changes
}

// showProgress writes the current step of the run to the CR's status, until stop is called. stop
// waits for the last write. If that one reaches the API server after the result, it changes
// nothing, because its patch tests the resource version.
func (r *Reconciler) showProgress(ctx context.Context, a *attempt, p *progress) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(progressPause)
		defer ticker.Stop()
		shown := 0
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			case <-p.moved:
				sleep(ctx, placePause)
			}
			report, changes := p.report(a.cr.GetGeneration())
			if changes == shown {
				continue
			}
			if err := r.writeStatus(ctx, a, r.merge(report), fewTries); err != nil {
				log.FromContext(ctx).V(1).Info("the running task could not be written to the status", "error", err.Error())
				continue // The next one may.
			}
			shown = changes
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
