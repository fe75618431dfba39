package eventlog

import (
	"crypto/sha256"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/pkg/content"
)

// maxFailures bounds the failures that are kept of a CR's run. The log shows further ones in full
// each time.
const maxFailures = 16

// failureHistory has the failures of each CR's last run, so that the log does not show a repeated
// failure in full again. It keeps nothing of a CR whose last run had no failure.
type failureHistory struct {
	mu  sync.Mutex
	crs map[crKey]*failureCounts
}

// crKey names a CR by the fields of content.Run.
type crKey struct {
	watch  schema.GroupVersionKind
	object string
}

// failureCounts has the digests of the failures of the last run and of the current run. Its values
// are how many runs in a row have had the failure.
type failureCounts struct{ lastRun, thisRun map[[sha256.Size]byte]int }

// count adds a failure of a run and returns how many runs in a row have had it. Equal failures
// must have equal texts.
func (r *failureHistory) count(run content.Run, failure string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := crKey{run.Watch, run.Object}
	f := r.crs[key]
	if f == nil {
		f = &failureCounts{}
		if r.crs == nil {
			r.crs = map[crKey]*failureCounts{}
		}
		r.crs[key] = f
	}
	sum := sha256.Sum256([]byte(failure))
	times := f.lastRun[sum] + 1
	if f.thisRun == nil {
		f.thisRun = map[[sha256.Size]byte]int{}
	}
	if len(f.thisRun) < maxFailures {
		f.thisRun[sum] = times
	}
	return times
}

// runEnded makes the current run the last run. A canceled run is ignored, because it may have ended
// before it had all of its failures.
func (r *failureHistory) runEnded(run content.Run, canceled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := crKey{run.Watch, run.Object}
	f := r.crs[key]
	switch {
	case f == nil:
		return
	case !canceled:
		f.lastRun = f.thisRun
	}
	f.thisRun = nil
	if f.lastRun == nil {
		delete(r.crs, key)
	}
}

func (r *failureHistory) forget(watch schema.GroupVersionKind, object string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.crs, crKey{watch, object})
}
