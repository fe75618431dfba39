package engine

import (
	"errors"
	"sync"

	"github.com/ensign-operator/ensign/pkg/content"
)

// refusals has the last refusal of each CR that only rendering found, by its UID: the chart gives text
// of the CR to tpl. The zero value is empty.
type refusals struct {
	mu  sync.Mutex
	all map[string]refusal
}

// refusal is the refusal of the values with the digest, by the chart at that time.
type refusal struct{ digest, message string }

// refusedBefore returns the refusal of the same values by the same chart, unless a user asked for the
// run: another run would end the same. Values that come from objects are not known here.
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
