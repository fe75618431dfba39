package engine

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/chart/objects"
)

// memory keeps facts about the release of a CR from one run to the next. The runs of a CR follow one another, so that
// only the set of all memories is locked.
type memory struct {
	// rest is the last comparison; nil if none counts.
	rest     *compared
	refusal  refusal
	contests contests
	finished objects.Finished
	// messages are those that were logged, by their topics, to avoid repetitions.
	messages map[string]note
}

type note struct{ key, text string }

// first returns the text of the first call with the key for the topic, and whether that is this call.
// A new key replaces the last one.
func (m *memory) first(topic, key, text string) (string, bool) {
	if last, known := m.messages[topic]; known && last.key == key {
		return last.text, false
	}
	m.messages[topic] = note{key, text}
	return text, true
}

// memories are those of CRs, by their UIDs. The zero value is empty.
type memories struct{ all sync.Map }

func (m *memories) of(uid types.UID) *memory {
	known, _ := m.all.LoadOrStore(uid, &memory{contests: contests{}, finished: objects.Finished{}, messages: map[string]note{}})
	one, _ := known.(*memory)
	return one
}

func (m *memories) forget(uid types.UID) { m.all.Delete(uid) }
