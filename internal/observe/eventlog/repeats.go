package eventlog

import (
	"crypto/sha256"
	"sync"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

// maxRemembered bounds the failures of a CR's run that are remembered. Further ones
// are new each time.
const maxRemembered = 16

// repeats remembers for each CR how its last run failed, so that a failure that
// comes again is not shown in full again. A CR whose last run had no failure takes
// no memory.
type repeats struct {
	mu  sync.Mutex
	crs map[cr]*failures
}

// cr names a CR as the runs of it do.
type cr struct{ watch, object string }

// failures are those of the last run and of the one at work, and how many runs in
// a row each has been met by.
type failures struct{ last, now map[[sha256.Size]byte]int }

// met takes a failure of a run, by a text that is the same for the same failure, and
// gives how many runs in a row have met it.
func (r *repeats) met(run jobevent.Run, failure string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := cr{run.Watch, run.Object}
	f := r.crs[key]
	if f == nil {
		f = &failures{}
		if r.crs == nil {
			r.crs = map[cr]*failures{}
		}
		r.crs[key] = f
	}
	sum := sha256.Sum256([]byte(failure))
	times := f.last[sum] + 1
	if f.now == nil {
		f.now = map[[sha256.Size]byte]int{}
	}
	if len(f.now) < maxRemembered {
		f.now[sum] = times
	}
	return times
}

// ended takes the end of a run. One that was cut off may have met only some of the
// failures, and says nothing of the others.
func (r *repeats) ended(run jobevent.Run, cutOff bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := cr{run.Watch, run.Object}
	f := r.crs[key]
	switch {
	case f == nil:
		return
	case !cutOff:
		f.last = f.now
	}
	f.now = nil
	if f.last == nil {
		delete(r.crs, key)
	}
}

func (r *repeats) forget(watch, object string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.crs, cr{watch, object})
}
