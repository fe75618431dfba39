package objects

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Finished keeps the Jobs of a release that were seen to have ended. A repair does not create such a
// Job again after its deletion: a policy may have set its ttlSecondsAfterFinished. The zero value is
// empty.
type Finished struct {
	mu   sync.Mutex
	jobs map[string]bool
}

// note adds the live object if it is such a Job.
func (f *Finished) note(name string, live *unstructured.Unstructured) {
	if f == nil || !isJob(live) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.jobs == nil {
		f.jobs = map[string]bool{}
	}
	f.jobs[name] = isFinished(live)
}

func (f *Finished) has(name string) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.jobs[name]
}
