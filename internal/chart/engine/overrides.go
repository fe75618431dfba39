package engine

import (
	"encoding/json"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/ensign-operator/ensign/internal/sanitize"
)

// eventOverrides is the reason of the Events about overrideValues.
const eventOverrides = "OverrideValuesInUse"

// maxAction is the API's limit for the action of an Event, in bytes. The action differs for
// each value: Events of one reason and action are counted as one, whatever their notes say.
const maxAction = 128

// recordOverrides makes an Event for each value that overrides the CR's spec, in the words of
// operator-sdk's operator.
func (w *work) recordOverrides() {
	if w.engine.Recorder == nil {
		return
	}
	for _, o := range w.engine.overrides {
		value := "****"
		if !w.engine.SuppressOverrides {
			value = textOf(o.Value)
		}
		w.engine.Recorder.Eventf(w.cr, nil, corev1.EventTypeWarning, eventOverrides, cut("Override "+o.Key, maxAction),
			"Chart value %s overridden to %s by operator's watches.yaml", shownText(o.Key), shownText(value))
	}
}

// textOf returns a string as it is and any other value as JSON.
func textOf(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil { // Values have the types of JSON.
		return "?"
	}
	return string(text)
}

// shownText quotes a text for an Event, whose note has at most 1024 bytes.
func shownText(text string) string {
	const limit = 256
	return strconv.Quote(cut(sanitize.Text(text), limit))
}
