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

// progress holds the task that a run executes.
type progress struct {
	mu    sync.Mutex
	task  string
	since time.Time
	tasks int // that have begun
}

func (p *progress) begin(task string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.task, p.since = task, now
	p.tasks++
}

func (p *progress) report(generation int64) (report status.Report, tasks int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return status.Working(generation, p.task, p.since), p.tasks
}

// showProgress writes the task that the run executes to the CR's status, until stop is
// called. stop waits for the last write. If that one reaches the API server after the
// result, it changes nothing, because its patch tests the resource version.
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
			}
			report, tasks := p.report(a.cr.GetGeneration())
			if tasks == shown {
				continue
			}
			if err := r.writeStatus(ctx, a, r.merge(report), fewTries); err != nil {
				log.FromContext(ctx).V(1).Info("the running task could not be written to the status", "error", err.Error())
				continue // The next one may.
			}
			shown = tasks
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
