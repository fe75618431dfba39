package children

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// notification is a change of a child of a CR, or of an object to which the CR refers.
type notification struct {
	cr types.NamespacedName
	// uid is "" where the changed object does not name the CR's UID.
	uid types.UID
	// The description of the change; "" if only the health changed.
	what string
	// current is how many children have become Current for kstatus.
	current int
}

// notificationQueue has the notifications of one watch, in their order. A CR is in it once for a change, and
// once for the status of its children: a change may lead to no look at a CR whose run has to wait.
type notificationQueue struct {
	mu      sync.Mutex
	waiting []notification
	added   chan struct{}
}

func newNotificationQueue() *notificationQueue {
	return &notificationQueue{added: make(chan struct{}, 1)}
}

func (q *notificationQueue) add(n notification) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.waiting, func(w notification) bool { return w.cr == n.cr && w.uid == n.uid && (w.what == "") == (n.what == "") })
	if i < 0 {
		q.waiting = append(q.waiting, n)
	} else {
		same := &q.waiting[i]
		same.current += n.current
	}
	select {
	case q.added <- struct{}{}:
	default:
	}
}

func (q *notificationQueue) pop() (first notification, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return notification{}, false
	}
	first, q.waiting = q.waiting[0], q.waiting[1:]
	return first, true
}

// deliver calls changed for each notification until ctx ends.
func (q *notificationQueue) deliver(ctx context.Context, changed Changed) {
	for ctx.Err() == nil {
		if n, ok := q.pop(); ok {
			changed(n.cr, n.uid, n.what, n.current)
			continue
		}
		select {
		case <-ctx.Done():
		case <-q.added:
		}
	}
}
