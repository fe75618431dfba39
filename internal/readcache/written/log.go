package written

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	"github.com/ensign-operator/ensign/internal/access"
)

const (
	// doubtTime is for how long a write whose outcome is not known may still be
	// carried out: the API server gives a request up after a minute.
	doubtTime = 90 * time.Second
	// memoryTime is for how long writes matter: no live informer is that late.
	memoryTime = 10 * time.Minute
)

// Log knows what runs have written.
type Log struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	storages map[storage]*record
	sessions map[*access.Session]map[storage]*doubt
}

// record is what runs have done to a storage.
type record struct {
	// versions are the newest of each namespace.
	versions map[string]version
	// gone are objects that were deleted, and since when.
	gone map[types.UID]time.Time
	// doubtful is until when a write may come to light whose outcome is not known.
	doubtful time.Time
}

type version struct {
	number string
	since  time.Time
}

// doubt is what a session does not know of its own writes to a storage.
type doubt struct {
	// open counts writes without an answer yet.
	open int
	// unknown is true once an answer did not tell what it had come to.
	unknown bool
}

// New makes an empty log.
func New(c clock.PassiveClock) *Log {
	return &Log{clock: c, storages: map[storage]*record{}, sessions: map[*access.Session]map[storage]*doubt{}}
}

// Begin takes down that a session writes. What it returns is called once, with the
// answer.
func (l *Log) Begin(session *access.Session, write access.Write) (answered func(access.Answer)) {
	if storesNothing(write.Subresource) {
		return func(access.Answer) {}
	}
	place := storageOf(write.Resource)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sessions[session] == nil {
		l.sessions[session] = map[storage]*doubt{}
	}
	d := l.sessions[session][place]
	if d == nil {
		d = &doubt{}
		l.sessions[session][place] = d
	}
	d.open++
	return func(answer access.Answer) {
		l.mu.Lock()
		defer l.mu.Unlock()
		d.open--
		if !l.note(l.storage(place), write, answer) {
			d.unknown = true
			l.doubt(place)
		}
	}
}

// storage needs the lock.
func (l *Log) storage(place storage) *record {
	s := l.storages[place]
	if s == nil {
		s = &record{versions: map[string]version{}, gone: map[types.UID]time.Time{}}
		l.storages[place] = s
	}
	return s
}

// doubt needs the lock.
func (l *Log) doubt(place storage) {
	l.storage(place).doubtful = l.clock.Now().Add(doubtTime)
}

// End forgets a session. What it did not get to know stays in doubt for a while.
func (l *Log) End(session *access.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for place, d := range l.sessions[session] {
		if d.open > 0 || d.unknown {
			l.doubt(place)
		}
	}
	delete(l.sessions, session)
}

// Read is what somebody is about to get from a store.
type Read struct {
	Resource schema.GroupVersionResource
	// Namespace is "" for all, and for what is cluster-scoped.
	Namespace string
	// Reached is a resource version up to which the store had seen every change before
	// the objects were read from it.
	Reached string
	// Objects are those of the namespace, or all, among which a list chose by labels; or
	// the one that was read.
	Objects []types.UID
}

// Shows tells whether a session that gets the read gets all that was written.
func (l *Log) Shows(session *access.Session, read Read) bool {
	place := storageOf(read.Resource)
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.sessions[session][place]; d != nil && (d.open > 0 || d.unknown) {
		return false
	}
	s := l.storages[place]
	if s == nil {
		return true
	}
	if l.clock.Now().Before(s.doubtful) || !s.isReached(read) {
		return false
	}
	for _, uid := range read.Objects {
		if _, gone := s.gone[uid]; gone {
			return false
		}
	}
	return true
}

// isReached tells whether a store has seen the writes in the namespace, or in all.
func (s *record) isReached(read Read) bool {
	for namespace, v := range s.versions {
		if read.Namespace != "" && read.Namespace != namespace {
			continue
		}
		if order, err := resourceversion.CompareResourceVersion(read.Reached, v.number); err != nil || order < 0 {
			return false
		}
	}
	return true
}

// Forget drops what is too long ago to matter.
func (l *Log) Forget() {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for place, s := range l.storages {
		for namespace, v := range s.versions {
			if now.Sub(v.since) > memoryTime {
				delete(s.versions, namespace)
			}
		}
		for uid, since := range s.gone {
			if now.Sub(since) > memoryTime {
				delete(s.gone, uid)
			}
		}
		if len(s.versions) == 0 && len(s.gone) == 0 && now.After(s.doubtful) {
			delete(l.storages, place)
		}
	}
}
