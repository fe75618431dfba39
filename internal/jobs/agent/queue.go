package agent

import (
	"bytes"
	"context"
	"strconv"
	"sync"
)

const (
	// maxQueued is how many bytes of events wait for the manager. The run waits for room.
	maxQueued = 16 << 20
	// maxBatch is how many bytes of events are sent at a time; one event may be longer.
	maxBatch = 1 << 20
)

// queue has the events that no manager has acknowledged yet, in order.
type queue struct {
	mu      sync.Mutex
	events  [][]byte // each is JSON
	bytes   int
	first   int64 // the number of events[0], or of the next event
	changed chan struct{}
}

func newQueue() *queue { return &queue{first: 1, changed: make(chan struct{})} }

// put adds an event. It waits for room until ctx ends; then it drops the event and all later ones.
func (q *queue) put(ctx context.Context, event []byte) {
	for {
		q.mu.Lock()
		if q.bytes == 0 || q.bytes+len(event) <= maxQueued {
			q.events, q.bytes = append(q.events, event), q.bytes+len(event)
			q.wake()
			q.mu.Unlock()
			return
		}
		changed := q.changed
		q.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// wake wakes up all waiting goroutines. The caller holds the lock.
func (q *queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// last returns the number of the last event; 0 if there was none.
func (q *queue) last() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.first + int64(len(q.events)) - 1
}

// batch returns the oldest events as the JSON of wire.Events, and their number. changed is closed when
// the queue changes.
func (q *queue) batch() (body []byte, count int, changed <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out bytes.Buffer
	out.WriteString(`{"First":` + strconv.FormatInt(q.first, 10) + `,"Events":[`)
	for _, event := range q.events {
		if count > 0 {
			if out.Len()+len(event) > maxBatch {
				break
			}
			out.WriteByte(',')
		}
		out.Write(event)
		count++
	}
	out.WriteString("]}")
	return out.Bytes(), count, q.changed
}

// taken drops the events below next, and returns their number.
func (q *queue) taken(next int64) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	count := min(max(0, next-q.first), int64(len(q.events)))
	for _, event := range q.events[:count] {
		q.bytes -= len(event)
	}
	q.events, q.first = q.events[count:], q.first+count
	q.wake()
	return count
}
