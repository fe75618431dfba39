package children

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// news is that something of a CR has changed, and what.
type news struct {
	cr   types.NamespacedName
	uid  types.UID
	what string
}

// inbox holds the news of one watch, that of a CR once, in the order in which it came.
type inbox struct {
	mu      sync.Mutex
	waiting []news
	arrived chan struct{}
}

func newInbox() *inbox { return &inbox{arrived: make(chan struct{}, 1)} }

func (i *inbox) put(n news) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !slices.ContainsFunc(i.waiting, func(w news) bool { return w.cr == n.cr && w.uid == n.uid }) {
		i.waiting = append(i.waiting, n)
	}
	select {
	case i.arrived <- struct{}{}:
	default:
	}
}

func (i *inbox) take() (first news, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.waiting) == 0 {
		return news{}, false
	}
	first, i.waiting = i.waiting[0], i.waiting[1:]
	return first, true
}

func (i *inbox) deliver(ctx context.Context, changed func(types.NamespacedName, types.UID, string)) {
	for ctx.Err() == nil {
		if n, ok := i.take(); ok {
			changed(n.cr, n.uid, n.what)
			continue
		}
		select {
		case <-ctx.Done():
		case <-i.arrived:
		}
	}
}
