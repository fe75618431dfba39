package controller

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/slots"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Objects are objects by their kind.
type Objects = map[schema.GroupVersionKind][]types.NamespacedName

// Related knows the objects that CRs have to do with: their children, and those to
// which they refer.
type Related interface {
	// Follow calls changed for each CR of the watch of whose objects there is news,
	// one at a time, until ctx ends. It returns once the watches are on their way
	// that an earlier manager had. The UID is "" where an object does not tell it; what
	// says for the log what has changed.
	Follow(ctx context.Context, watch Scope, changed func(cr types.NamespacedName, uid types.UID, what string))
	// Refers says to what a CR refers, in place of what it did before.
	Refers(watch schema.GroupVersionKind, cr types.NamespacedName, to Objects)
	// State stands for the objects as they are. It is "" where that is not known,
	// and then changed will be called once it is. It waits for a while until it is.
	State(ctx context.Context, watch schema.GroupVersionKind, cr types.NamespacedName, to Objects) string
}

// Scope is a watched kind, and whether its CRs have a namespace.
type Scope = struct {
	GVK        schema.GroupVersionKind
	Namespaced bool
}

// referencesField of a reduced object holds the objects to which the CR refers,
// each as the number of the watch's reference, namespace and name.
const referencesField = "ensignReferences"

// keepReferences notes in a reduced CR to what the full one refers.
func keepReferences(references []watches.Reference, full, reduced *unstructured.Unstructured) {
	var kept []any
	for i, reference := range references {
		for _, to := range reference.In(full.Object) {
			kept = append(kept, strconv.Itoa(i)+"/"+to.Namespace+"/"+to.Name)
		}
	}
	if kept != nil {
		reduced.Object[referencesField] = kept
	}
}

// keptReferences is to what a reduced CR refers.
func keptReferences(references []watches.Reference, reduced *unstructured.Unstructured) Objects {
	found := Objects{}
	kept, _ := reduced.Object[referencesField].([]any)
	for _, item := range kept {
		text, _ := item.(string)
		parts := strings.SplitN(text, "/", 3)
		if i, err := strconv.Atoi(parts[0]); err == nil && len(parts) == 3 && i < len(references) {
			gvk := references[i].GVK
			found[gvk] = append(found[gvk], types.NamespacedName{Namespace: parts[1], Name: parts[2]})
		}
	}
	return found
}

// digestWith is digestOf with the objects to which the attempt's CR refers, as they
// are now.
func (r *Reconciler) digestWith(ctx context.Context, a *attempt) string {
	own, references := r.digestOf(a.cr), r.Watch.References
	if r.Related == nil || len(references) == 0 || a.cr.GetDeletionTimestamp() != nil {
		return own // Nobody asks a CR that goes.
	}
	to := Objects{}
	for _, reference := range references {
		to[reference.GVK] = append(to[reference.GVK], reference.In(a.cr.Object)...)
	}
	if own == "" {
		r.Related.Refers(r.Watch.GVK, a.request.NamespacedName, to)
		return ""
	}
	state := r.Related.State(ctx, r.Watch.GVK, a.request.NamespacedName, to)
	if state == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(own + "\n" + state))
	return hex.EncodeToString(sum[:])
}

// nudged notes that there is news of objects that the CR has to do with. It is
// true where that asks for an attempt: not while one waits for its slot, which will
// see everything, and not for a CR that has not been shown yet or goes.
func (m *memories) nudged(name types.NamespacedName, uid types.UID, what string) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(name)
	switch {
	case found.known == "":
		found.nudged = cmp.Or(found.nudged, what) // Its own event comes, and must not let it rest.
		return false
	case uid != "" && uid != found.known, found.seen.idle, found.seen.class == slots.Urgent:
		return false
	}
	found.nudged = cmp.Or(found.nudged, what)
	if found.going {
		found.late = true // What it runs will see everything.
		return false
	}
	if found.seen.class == slots.Usual {
		found.seen.class = slots.Changed
		if found.wake != nil {
			found.wake()
		}
	}
	return found.wake == nil
}

// over ends an attempt. It tells whether there was news for it that it has not
// seen.
func (m *memories) over(name types.NamespacedName) (late bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.byName[name]
	if found == nil {
		return false
	}
	late = found.late
	found.going, found.late = false, false
	return late
}

// mustRun tells whether there was news of objects that the CR has to do with.
func (m *memories) mustRun(name types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entry(name).nudged != ""
}

// news is the source of the requests that come from the related objects of CRs.
// What there is news of before the CRs are known waits until they are.
type news struct {
	*Supervisor
	*Reconciler

	kind servedKind
}

func (n news) String() string { return "related objects" }

// Start implements source.Source.
func (n news) Start(ctx context.Context, q queue) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(n.GVK)
	informer, err := n.Cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s: %w", n.GVK, err)
	}
	n.Related.Follow(ctx, Scope{n.GVK, n.kind.namespaced}, func(cr types.NamespacedName, uid types.UID, what string) {
		synced := func(context.Context) (bool, error) { return informer.HasSynced(), nil }
		if wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, synced) != nil || !n.knows(ctx, cr) {
			return
		}
		places(q, n.memories.nudged(cr, uid, what), slots.Changed).Add(reconcile.Request{NamespacedName: cr})
	})
	return nil
}

// knows tells whether there is a CR of the name.
func (s *Supervisor) knows(ctx context.Context, cr types.NamespacedName) bool {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(s.GVK)
	return s.Cache.Get(ctx, cr, object) == nil
}
