package children

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// news is that something of a CR has changed.
type news struct {
	cr  types.NamespacedName
	uid types.UID
}

// inbox holds the news of one watch, each once, in the order in which it came.
type inbox struct {
	mu      sync.Mutex
	waiting []news
	arrived chan struct{}
}

func newInbox() *inbox { return &inbox{arrived: make(chan struct{}, 1)} }

func (i *inbox) put(n news) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !slices.Contains(i.waiting, n) {
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

func (i *inbox) deliver(ctx context.Context, changed func(types.NamespacedName, types.UID)) {
	for ctx.Err() == nil {
		if n, ok := i.take(); ok {
			changed(n.cr, n.uid)
			continue
		}
		select {
		case <-ctx.Done():
		case <-i.arrived:
		}
	}
}
