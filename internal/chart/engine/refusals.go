package engine

import (
	"errors"
	"sync"

	"github.com/ensign-operator/ensign/pkg/content"
)

// refusals are those that only rendering finds out: that the chart gives text of a CR to tpl. They
// have the last refusal of each CR, by its UID. The zero value has none.
type refusals struct {
	mu  sync.Mutex
	all map[string]refusal
}

// refusal is of the values with the digest, by the chart of that time.
type refusal struct{ digest, message string }

// refusedBefore returns the refusal of the same values by the same chart, unless somebody asks: another
// run would come to it again. Values that come from objects are not known here.
func (w *work) refusedBefore() *content.Outcome {
	if w.values == nil || w.requested || len(w.sources) > 0 {
		return nil
	}
	r := &w.engine.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.all[string(w.cr.GetUID())]
	if !known || last.digest != w.values.Digest {
		return nil
	}
	return content.Refusal(content.ReasonInvalidSpec, errors.New(last.message))
}

// rememberRefusal keeps an outcome that only a change of the CR can fix.
func (w *work) rememberRefusal(outcome content.Outcome) {
	if outcome.Reason != content.ReasonInvalidSpec || w.values == nil {
		return
	}
	r := &w.engine.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]refusal{}
	}
	r.all[string(w.cr.GetUID())] = refusal{w.values.Digest, outcome.Message}
}

func (r *refusals) forget(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, uid)
}
