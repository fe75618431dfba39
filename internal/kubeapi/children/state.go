package children

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
)

// stateTimeout is how long State waits for a kind, from when it is first watched or looked for.
const stateTimeout = 10 * time.Second

// State returns a text that differs whenever one of the objects differs: it has their UIDs and
// generations, or resource versions, and digests of the watch's StatusFields, but no content. A kind
// that the manager may not read is part of the text. State waits for the kinds that have only been watched
// for a short time, and returns "" if their objects are still unknown after that. The CR is
// notified once all of the objects are known.
func (c *Children) State(ctx context.Context, watch schema.GroupVersionKind, cr types.NamespacedName, to Objects) string {
	var lines []string
	known := func(context.Context) (done bool, err error) {
		lines, done = c.describeObjects(c.watches[watch.GroupKind()].StatusFields, to)
		return done, nil
	}
	c.Refers(watch, cr, to)
	ctx, cancel := context.WithTimeout(ctx, c.syncTimeout(to))
	defer cancel()
	defer c.notifyOnceKnown(ledger.CR{Kind: watch.GroupKind(), NamespacedName: cr}, to)
	if wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, known) == nil {
		slices.Sort(lines)
		return strings.Join(slices.Compact(lines), "\n") + "\n"
	}
	return ""
}

// syncTimeout returns how long State waits. It counts from when a kind is first watched or
// looked for, so that an API service that is down does not delay every run.
func (c *Children) syncTimeout(to Objects) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	longest := time.Duration(0)
	for gvk, names := range to {
		if len(names) == 0 {
			continue
		}
		since := c.references.kind(gvk).since
		if f := c.watchedReference(gvk); f != nil {
			since = f.since
		}
		longest = max(longest, stateTimeout-time.Since(since))
	}
	return longest
}

// notifyOnceKnown adds the CR to those that are notified once a kind's objects are known, for
// each kind that is not known yet.
func (c *Children) notifyOnceKnown(cr ledger.CR, to Objects) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gvk, names := range to {
		if f := c.watchedReference(gvk); len(names) > 0 && (f == nil || !f.synced()) {
			c.references.kind(gvk).waiting[cr] = true
		}
	}
}

// describeObjects returns a line for each object, and false while one of them is not known.
func (c *Children) describeObjects(status strip.StatusFields, to Objects) ([]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	for gvk, names := range to {
		for _, name := range names {
			text, known := unreadable, c.references.kind(gvk).absent
			if f := c.watchedReference(gvk); f != nil {
				text, known = f.describe(name, status[gvk.GroupKind()])
			}
			if !known {
				return nil, false
			}
			lines = append(lines, gvk.GroupKind().String()+" "+text)
		}
	}
	return lines, true
}

const unreadable = "can't be read"

// describe returns a text about the object's state with these fields of its status, and false
// while that is not known.
func (f *watchedKind) describe(name types.NamespacedName, status []string) (string, bool) {
	if !f.kind.Namespaced {
		name.Namespace = ""
	}
	informer, ok := f.informerFor(name.Namespace)
	switch {
	case !ok:
		return name.String() + " not watched", true
	case !informer.Synced():
		return unreadable, isRefusal(informer.Err())
	}
	object, ok, _ := informer.Store().GetByKey(storeKey(name.Namespace, name.Name))
	kept, is := object.(*strip.Object)
	switch {
	case !ok || !is:
		return name.String() + " absent", true
	case kept.Generation != 0:
		var text strings.Builder
		fmt.Fprintf(&text, "%s %s generation %d", name, kept.UID, kept.Generation)
		for _, field := range status {
			fmt.Fprintf(&text, " %s %x", field, kept.Status[field])
		}
		return text.String(), true
	default:
		return fmt.Sprintf("%s %s version %s", name, kept.UID, kept.ResourceVersion), true
	}
}
