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
	"github.com/ensign-operator/ensign/internal/kubeapi/children/reduce"
)

// stateLimit is how long runs wait for a kind to which their CRs refer, from when it is
// looked for first.
const stateLimit = 10 * time.Second

// State stands for the objects as they are, without their content: they are known
// by UID and generation, or resource version. It waits for kinds that have not been
// followed for long until they are known, and is "" after that; of a kind that can't be
// read it says that. Either way the CR is brought back once they are known.
func (c *Children) State(ctx context.Context, watch schema.GroupVersionKind, cr types.NamespacedName, to Objects) string {
	var lines []string
	known := func(context.Context) (done bool, err error) {
		lines, done = c.look(to)
		return done, nil
	}
	c.Refers(watch, cr, to)
	ctx, cancel := context.WithTimeout(ctx, c.syncTimeout(to))
	defer cancel()
	defer c.await(ledger.CR{Kind: watch.GroupKind(), NamespacedName: cr}, to)
	if wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, known) == nil {
		slices.Sort(lines)
		return strings.Join(slices.Compact(lines), "\n") + "\n"
	}
	return ""
}

// syncTimeout is how long it is worth to wait for the kinds: one that is down must not keep
// every run waiting.
func (c *Children) syncTimeout(to Objects) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	longest := time.Duration(0)
	for gvk, names := range to {
		if len(names) == 0 {
			continue
		}
		since := c.references.kind(gvk).since
		if f := c.at(gvk); f != nil {
			since = f.since
		}
		longest = max(longest, stateLimit-time.Since(since))
	}
	return longest
}

// await lets the CR be told once all of its kinds are known.
func (c *Children) await(cr ledger.CR, to Objects) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gvk, names := range to {
		if f := c.at(gvk); len(names) > 0 && (f == nil || !f.synced()) {
			c.references.kind(gvk).uncertain[cr] = true
		}
	}
}

// look describes the objects. It is false while some of them are not known.
func (c *Children) look(to Objects) ([]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	for gvk, names := range to {
		for _, name := range names {
			found, known := unreadable, c.references.kind(gvk).absent
			if f := c.at(gvk); f != nil {
				found, known = f.describe(name)
			}
			if !known {
				return nil, false
			}
			lines = append(lines, gvk.GroupKind().String()+" "+found)
		}
	}
	return lines, true
}

const unreadable = "can't be read"

// describe says which object there is, and which state of it. It is false where that is
// not known yet.
func (f *followed) describe(name types.NamespacedName) (string, bool) {
	if !f.kind.Namespaced {
		name.Namespace = ""
	}
	part, ok := f.partOf(name.Namespace)
	switch {
	case !ok:
		return name.String() + " not watched", true
	case !part.Synced():
		return unreadable, refuses(part.Err())
	}
	object, ok, _ := part.Store().GetByKey(storeKey(name.Namespace, name.Name))
	kept, is := object.(*reduce.Object)
	switch {
	case !ok || !is:
		return name.String() + " absent", true
	case kept.Generation != 0:
		return fmt.Sprintf("%s %s generation %d", name, kept.UID, kept.Generation), true
	default:
		return fmt.Sprintf("%s %s version %s", name, kept.UID, kept.ResourceVersion), true
	}
}
