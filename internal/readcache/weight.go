package readcache

import (
	"sync/atomic"

	toolscache "k8s.io/client-go/tools/cache"
)

// step is after how many more bytes of a kind the limit is looked at.
const step = 8 << 10

// weight is what the objects of a kind take, in bytes.
type weight struct {
	// arriving counts what comes before the store has it: a list is taken over as a
	// whole. From then on held counts what is there.
	arriving, held atomic.Int64
	loaded         atomic.Bool
	// press is called when it has become more.
	press func()
}

func (w *weight) bytes() int64 {
	if w.loaded.Load() {
		return w.held.Load()
	}
	return max(w.arriving.Load(), w.held.Load())
}

// keep is the transform of an informer.
func (w *weight) keep(from any) (any, error) {
	kept, err := keep(from)
	if err != nil {
		return nil, err
	}
	if from != any(kept) && !w.loaded.Load() {
		w.add(&w.arriving, kept.size())
	}
	return kept, nil
}

// OnAdd implements toolscache.ResourceEventHandler.
func (w *weight) OnAdd(added any, _ bool) { w.add(&w.held, sizeOf(added)) }

// OnUpdate implements toolscache.ResourceEventHandler.
func (w *weight) OnUpdate(before, after any) { w.add(&w.held, sizeOf(after)-sizeOf(before)) }

// OnDelete implements toolscache.ResourceEventHandler.
func (w *weight) OnDelete(deleted any) { w.add(&w.held, -sizeOf(deleted)) }

func (w *weight) add(to *atomic.Int64, bytes int64) {
	if sum := to.Add(bytes); sum/step > (sum-bytes)/step {
		w.press()
	}
}

func sizeOf(kept any) int64 {
	if last, ok := kept.(toolscache.DeletedFinalStateUnknown); ok {
		kept = last.Obj
	}
	if o, ok := kept.(*object); ok {
		return o.size()
	}
	return 0
}
