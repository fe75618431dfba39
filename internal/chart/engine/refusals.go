package engine

import (
	"errors"

	"github.com/ensign-operator/ensign/pkg/content"
)

// refusal is the refusal of the values with the digest, by the chart at that time, that only rendering found: the
// chart gives text of the CR to tpl.
type refusal struct{ digest, message string }

// refusedBefore returns the refusal of the same values by the same chart, unless a user asked for the
// run: another run would end the same. Values that come from objects are not known here.
func (w *work) refusedBefore() *content.Outcome {
	if w.values == nil || w.requested || len(w.sources) > 0 || w.memory.refusal.digest != w.values.Digest {
		return nil
	}
	return content.Refusal(content.ReasonInvalidSpec, errors.New(w.memory.refusal.message))
}

// rememberRefusal keeps an outcome that only a change of the CR can fix.
func (w *work) rememberRefusal(outcome content.Outcome) {
	if outcome.Reason == content.ReasonInvalidSpec && w.values != nil {
		w.memory.refusal = refusal{w.values.Digest, outcome.Message}
	}
}
