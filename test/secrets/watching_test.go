package secrets

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ensign-operator/ensign/test/harness"
)

// watching collects the command lines of runs' processes while they live.
type watching struct {
	stop  chan struct{}
	ended chan struct{}

	mu    sync.Mutex
	lines map[string]bool
}

func watchCommandLines(runDir string) *watching {
	w := &watching{stop: make(chan struct{}), ended: make(chan struct{}), lines: map[string]bool{}}
	go w.watch(runDir)
	return w
}

func (w *watching) watch(runDir string) {
	defer close(w.ended)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-ticker.C:
		}
		processes, _ := harness.ProcessesOf(runDir) // What can't be read has ended.
		w.mu.Lock()
		for _, p := range processes {
			w.lines[p.CommandLine] = true
		}
		w.mu.Unlock()
	}
}

func (w *watching) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.lines))
}

func (w *watching) end() {
	close(w.stop)
	<-w.ended
}
