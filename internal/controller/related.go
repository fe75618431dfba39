package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Objects are objects by their kind.
type Objects = map[schema.GroupVersionKind][]types.NamespacedName

// Related follows the objects that belong to CRs: their children, and the objects to which
// their specs refer.
type Related interface {
	// Subscribe calls changed, one call at a time, for each CR of the watch of which an object
	// changed, until ctx ends. It returns when the watches that an earlier manager had are started.
	// uid is "" if the object does not say which CR of the name it belongs to. The third argument
	// names the object in the log, and is "" if only the status of children has changed. current is
	// how many children have become Current for kstatus.
	Subscribe(ctx context.Context, watch Scope, changed func(cr types.NamespacedName, uid types.UID, what string, current int))
	// Health returns the health of a CR's children. When it changes, changed is called without a text.
	Health(watch schema.GroupVersionKind, cr types.NamespacedName) Health
	// StatusFrom returns the fields of children that the status shows, by the key of the status; nil for one
	// that there is not.
	StatusFrom(watch schema.GroupVersionKind, cr types.NamespacedName) map[string]any
	// Refers sets the objects to which a CR refers, in place of those before.
	Refers(watch schema.GroupVersionKind, cr types.NamespacedName, to Objects)
	// State returns a digest of the objects. It waits a short time until they are known. If
	// they are still unknown, it returns "", and changed is called once they are known.
	State(ctx context.Context, watch schema.GroupVersionKind, cr types.NamespacedName, to Objects) string
}

// Health is that of a CR's children: those that are not Current for kstatus, and those of them that count
// although the CR was healthy. Next is when another one begins to count. Uncounted are kinds that are not watched.
type Health = struct {
	Known        bool
	All, Overdue []string
	Next         time.Time
	Uncounted    []string
}

// Scope is a watched kind, and whether its CRs have a namespace.
type Scope = struct {
	GVK        schema.GroupVersionKind
	Namespaced bool
}

// referencesField of a stripped object holds the objects to which the CR refers,
// each as the number of the watch's reference, namespace and name.
const referencesField = "ensignReferences"

// noteReferences stores in a stripped CR the references of the full one.
func noteReferences(references []watches.Reference, full, stripped *unstructured.Unstructured) {
	var items []any
	for i, reference := range references {
		for _, to := range reference.Resolve(full.Object) {
			items = append(items, strconv.Itoa(i)+"/"+to.Namespace+"/"+to.Name)
		}
	}
	if items != nil {
		stripped.Object[referencesField] = items
	}
}

// referencesOf returns the objects to which a stripped CR refers.
func referencesOf(references []watches.Reference, stripped *unstructured.Unstructured) Objects {
	found := Objects{}
	items, _ := stripped.Object[referencesField].([]any)
	for _, item := range items {
		text, _ := item.(string)
		parts := strings.SplitN(text, "/", 3)
		if i, err := strconv.Atoi(parts[0]); err == nil && len(parts) == 3 && i < len(references) {
			gvk := references[i].GVK
			found[gvk] = append(found[gvk], types.NamespacedName{Namespace: parts[1], Name: parts[2]})
		}
	}
	return found
}

// newReference returns an object to which a stripped CR refers and did not before, for the log; "" if
// there is none.
func newReference(references []watches.Reference, before, after *unstructured.Unstructured) string {
	known := referencesOf(references, before)
	for gvk, names := range referencesOf(references, after) {
		for _, name := range names {
			if !slices.Contains(known[gvk], name) {
				return gvk.Kind + " " + strings.TrimPrefix(name.String(), "/")
			}
		}
	}
	return ""
}

// setReferences gives related the objects to which a CR refers, before anything runs for it.
// stripped is nil for a CR that is gone.
func setReferences(related Related, watch *watches.Watch, name types.NamespacedName, stripped *unstructured.Unstructured) {
	switch {
	case related == nil, len(watch.References) == 0:
	case stripped == nil:
		related.Refers(watch.GVK, name, nil)
	default:
		related.Refers(watch.GVK, name, referencesOf(watch.References, stripped))
	}
}

// Source is a source of events that a program's author gives a watch. Its requests name CRs.
type Source = source.TypedSource[reconcile.Request]

// authoredSource makes the CRs run again that a Source names. The requests of objects that have
// not changed, those of the first list and of a resync, have the low priority of
// controller-runtime, and change nothing: an event does not say what an earlier manager's run saw.
//
// It does not wait for the source's cache, so that a kind that cannot be listed stops no watch.
type authoredSource struct {
	*Supervisor
	*Reconciler
	Source
}

// address ends the names of sources that are a channel or a function: it says nothing to anybody,
// and is another one after each start.
var address = regexp.MustCompile(`: 0x[0-9a-f]+$`)

func (s authoredSource) String() string {
	return address.ReplaceAllString(strings.TrimPrefix(fmt.Sprint(s.Source), "kind source: "), "")
}

// Start implements source.Source.
func (s authoredSource) Start(ctx context.Context, q queue) error {
	priorities, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		return errors.New("the controller's queue has no priorities")
	}
	mark, err := s.marker(ctx, &s.states)
	if err != nil {
		return err
	}
	return s.Source.Start(ctx, marking{priorities, func(req reconcile.Request) bool {
		return mark(req.NamespacedName, "", s.String())
	}})
}

// relatedSource makes requests of the changes of CRs' related objects.
type relatedSource struct {
	*Supervisor
	*Reconciler

	kind servedKind
}

func (n relatedSource) String() string { return "related objects" }

// Start implements source.Source.
func (n relatedSource) Start(ctx context.Context, q queue) error {
	mark, err := n.marker(ctx, &n.states)
	if err != nil {
		return err
	}
	q = withPriority(q, slots.Changed)
	n.Related.Subscribe(ctx, Scope{n.GVK, n.kind.namespaced}, func(name types.NamespacedName, uid types.UID, what string, current int) {
		n.states.mailboxOf(name).noteCurrent(current)
		if marked := what != "" && mark(name, uid, what); marked || what == "" || current > 0 { // Health alone leads to a look, and to no run.
			q.Add(reconcile.Request{NamespacedName: name})
		}
	})
	return nil
}

// marker returns a function that marks a CR as dirty because of another object. It reports whether
// the caller must put the CR into the queue. It first waits until the cache of the CRs is filled. A
// CR that is not there, has another UID, or is being deleted, is not marked; the UID "" is any.
func (s *Supervisor) marker(ctx context.Context, all *states) (func(name types.NamespacedName, uid types.UID, what string) bool, error) {
	synced, err := s.synced(ctx)
	if err != nil {
		return nil, err
	}
	return func(name types.NamespacedName, uid types.UID, what string) bool {
		cr := s.object()
		if wait.PollUntilContextCancel(ctx, syncInterval, true, synced) != nil || s.Cache.Get(ctx, name, cr) != nil {
			return false
		}
		return (uid == "" || uid == cr.GetUID()) && cr.GetDeletionTimestamp() == nil && all.of(name).mailbox.markDirty(causeRelated+what)
	}, nil
}

// marking is the queue that a Source gets. It takes a request where mark has made its CR dirty.
type marking struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	mark func(reconcile.Request) bool
}

// Add implements workqueue.TypedInterface.
func (q marking) Add(req reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, req) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q marking) AddAfter(req reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, req)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q marking) AddRateLimited(req reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, req)
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q marking) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	if o.Priority != nil && *o.Priority == ctrlhandler.LowPriority {
		return
	}
	o.Priority = queuePriority(slots.Changed)
	for _, req := range requests {
		if q.mark(req) {
			q.PriorityQueue.AddWithOpts(o, req)
		}
	}
}

// recordedSource makes requests of the CRs of which the content has records, and which went while no manager ran. The
// attempt names the remains: no other one of the name, such as the first of a new CR, runs beside it.
type recordedSource struct {
	*Supervisor
	*Reconciler
}

func (s recordedSource) String() string { return "records of resources" }

// Start implements source.Source.
func (s recordedSource) Start(ctx context.Context, q queue) error {
	synced, err := s.synced(ctx)
	if err != nil {
		return err
	}
	go func() {
		if wait.PollUntilContextCancel(ctx, syncInterval, true, synced) == nil {
			s.request(ctx, q)
		}
	}()
	return nil
}

func (s recordedSource) request(ctx context.Context, q queue) {
	recorded, err := s.Recorded(ctx)
	if err != nil && ctx.Err() == nil {
		s.Logger.Info("WARNING: cannot name the remains of resources that were deleted while no manager ran; the next start tries again", "error", err.Error())
	}
	for name, uid := range recorded {
		request := reconcile.Request{NamespacedName: name}
		if ctx.Err() != nil || s.Cache.Get(ctx, name, s.object()) == nil {
			continue
		}
		if _, err := s.get(ctx, request); apierrors.IsNotFound(err) {
			s.states.of(name).mailbox.setRecorded(uid)
			q.Add(request)
		}
	}
}

// healthWritePause is the shortest time between two writes of the same Ready with another text.
const healthWritePause = 10 * time.Second

// health returns the report of the health of the CR's children; nil if it does not count. It sets
// when to look again.
func (r *Reconciler) health(a *attempt) *status.Health {
	if r.Watch.Health == nil || r.Related == nil || a.cr.GetDeletionTimestamp() != nil {
		return nil
	}
	found := r.Related.Health(r.Watch.GVK, a.request.NamespacedName)
	a.lookBy(found.Next)
	var missing []string
	if last := a.state.last; last != nil {
		for _, object := range last.Missing {
			if kind, name, _ := strings.Cut(object, " "); r.Watch.Health.Ignores(kind, name[strings.LastIndex(name, "/")+1:]) {
				continue
			}
			missing = append(missing, object+": not found")
		}
	}
	return &status.Health{Known: found.Known, All: slices.Concat(missing, found.All), Overdue: slices.Concat(missing, found.Overdue), Uncounted: found.Uncounted}
}

// lookBy sets the next look at the CR's children to t at the latest; the zero time sets nothing.
func (a *attempt) lookBy(t time.Time) {
	if a.healthNext.IsZero() || !t.IsZero() && t.Before(a.healthNext) {
		a.healthNext = t
	}
}

// lookAgain sets a look at the fields of children after a run and after a start: informers may show a child
// late, and tell nothing where only its owner has changed.
func (r *Reconciler) lookAgain(a *attempt) {
	if len(r.Watch.StatusFrom) > 0 {
		a.lookBy(r.Clock.Now().Add(healthWritePause))
	}
}

// reportChildren makes Ready show the health of the CR's children, if its generation has succeeded, and the
// status the fields of children.
func (r *Reconciler) reportChildren(ctx context.Context, a *attempt) error {
	fields := r.childFields(a)
	reports, operations := r.childReports(a, fields)
	if len(operations) == 0 {
		return nil
	}
	now, next := r.Clock.Now(), a.state.healthWritten.Add(healthWritePause)
	if !status.ChangesReady(a.cr, operations) && now.Before(next) {
		a.lookBy(next)
		return nil
	}
	a.state.healthWritten = now
	var errs []error
	for _, report := range reports {
		errs = append(errs, r.writeInterim(ctx, a, report))
	}
	err := errors.Join(errs...)
	if err == nil {
		a.state.fields = fields
	}
	return err
}

// childFields returns the fields of children that the status shows; nil if it shows none.
func (r *Reconciler) childFields(a *attempt) map[string]any {
	if r.Related == nil || len(r.Watch.StatusFrom) == 0 || a.cr.GetDeletionTimestamp() != nil {
		return nil
	}
	return r.Related.StatusFrom(r.Watch.GVK, a.request.NamespacedName)
}

// childReports returns the reports about children that change the status, and their changes. Ready has a
// report of its own, which is written although the kind's schema refuses a field. Ready stays as it is until
// the health is known. Where the schema drops fields, the same ones are not written again.
func (r *Reconciler) childReports(a *attempt, fields map[string]any) (reports []status.Report, operations []status.Operation) {
	generation, all := a.cr.GetGeneration(), []status.Report(nil)
	if health := r.health(a); health != nil && health.Known {
		all = append(all, status.Observed(generation, health))
	}
	if fields != nil && !(r.drops.Load() && reflect.DeepEqual(fields, a.state.fields)) {
		all = append(all, status.WithFields(generation, fields))
	}
	for _, report := range all {
		if changes := r.merge(report)(a.cr); len(changes) > 0 {
			reports, operations = append(reports, report), append(operations, changes...)
		}
	}
	return reports, operations
}

// Readies collects conditions Ready, each different one once. Its zero value has none.
type Readies struct {
	mu   sync.Mutex
	seen map[string]bool
}

// Add adds a condition.
func (s *Readies) Add(condition map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	if len(s.seen) < 100 { // Otherwise nothing bounds the conditions that content writes.
		s.seen[fmt.Sprint(condition)] = true // Maps are printed with sorted keys.
	}
}

// addWritten adds the conditions that operations write.
func (s *Readies) addWritten(operations []status.Operation) {
	for _, o := range operations {
		if value, _ := o.Value.(map[string]any); value["type"] == string(status.Ready) {
			s.Add(value)
		}
	}
}

// addOf adds the conditions of a status.
func (s *Readies) addOf(cr *unstructured.Unstructured) {
	conditions, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
	for _, c := range conditions {
		if value, _ := c.(map[string]any); value["type"] == string(status.Ready) {
			s.Add(value)
		}
	}
}

// beyond reports whether there is a condition that others does not have.
func (s *Readies) beyond(others *Readies) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for condition := range s.seen {
		if !others.seen[condition] {
			return true
		}
	}
	return false
}
