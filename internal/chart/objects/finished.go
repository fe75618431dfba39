package objects

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Finished keeps which Jobs of a release were seen to have ended. A repair does not create a Job
// again that has done its work, also if somebody deleted it: a policy may have set its
// ttlSecondsAfterFinished. The zero value is empty.
type Finished struct {
	mu   sync.Mutex
	jobs map[string]bool
}

// note notes whether the live object is such a Job.
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

// has reports whether a Job was seen to have ended.
func (f *Finished) has(name string) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.jobs[name]
}
