package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/ensign-operator/ensign/internal/chart/manifest"
	chartobjects "github.com/ensign-operator/ensign/internal/chart/objects"
	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/release"
)

// settleTime is how long a run waits for objects that are being deleted. After that the CR waits
// without a run.
const settleTime = 10 * time.Second

// remainingObjects are the objects of a release that are not gone, described for people.
type remainingObjects struct {
	// there are objects to delete.
	there []object
	// waiting are being deleted.
	waiting []string
	// unknown could not be read.
	unknown []string
	// others belong to another release by now.
	others []string
}

// object is a live object of a release.
type object struct {
	name   string
	live   metav1.Object
	client dynamic.ResourceInterface
}

// removeRemaining deletes the remaining objects of the release, waits a short time, and returns those that
// still remain, with the API server's reasons. refused is true if an object could not be read or
// deleted: then waiting alone does not help.
func (w *work) removeRemaining(ctx context.Context, f found) (left []string, refused bool, err error) {
	recorded, err := recordedObjects(f.history)
	if err != nil {
		return nil, false, err
	}
	var warned, failed bool
	settled := func(context.Context) (bool, error) { // Not with the context of the wait: an object that is not read would count as gone.
		r, err := w.remainingOf(ctx, f, recorded)
		if err != nil {
			failed = true
			return false, err
		}
		if len(r.others) > 0 && !warned {
			w.warnLeft(ctx, strings.Join(r.others, ", "))
			warned = true
		}
		left, refused = slices.Concat(r.unknown, r.waiting), len(r.unknown) > 0
		for _, o := range r.there {
			text := o.name + " (is being deleted)"
			if err := o.delete(ctx); err != nil {
				text, refused = fmt.Sprintf("%s (cannot be deleted: %v)", o.name, err), true
			}
			left = append(left, text)
		}
		return len(left) == 0 || refused, nil
	}
	pause := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Steps: 20, Cap: time.Second}
	waiting, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	err = pause.DelayFunc().Until(waiting, true, true, settled)
	if wait.Interrupted(err) && !failed {
		err = nil
	}
	return left, refused, err
}

// delete deletes the object as it was seen.
func (o object) delete(ctx context.Context) error {
	uid, background := o.live.GetUID(), metav1.DeletePropagationBackground
	err := o.client.Delete(ctx, o.live.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // The next look shows the result.
	}
	return err
}

// remaining looks at each object of the release by its name. Where the ledger knows no release, it looks for
// children of the CR.
func (w *work) remaining(ctx context.Context, f found) (remainingObjects, error) {
	recorded, err := recordedObjects(f.history)
	if err != nil {
		return remainingObjects{}, err
	}
	return w.remainingOf(ctx, f, recorded)
}

func (w *work) remainingOf(ctx context.Context, f found, recorded []recorded) (r remainingObjects, err error) {
	if len(f.history.Known) == 0 {
		return w.unrecorded(ctx, f)
	}
	seen := map[string]bool{}
	for _, one := range recorded {
		kind := one.GroupVersionKind().GroupKind().String()
		live, client, err := f.cluster.Get(ctx, one.Unstructured)
		if apierrors.IsForbidden(err) {
			err = w.unlessNever(ctx, f, one.Unstructured, err)
		}
		name := manifest.Name(one.Unstructured)
		switch {
		case seen[kind+name], live == nil && err == nil:
		case one.hook && err == nil && !w.mustRemove(live):
		case !one.hook && err == nil && !chartobjects.BelongsTo(live, w.namespace, w.name) && !aggregatedAnew(one.Unstructured, live):
			r.others = append(r.others, name+", which no longer has the labels and annotations of this release")
		default:
			r.add(name, live, client, err)
		}
		seen[kind+name] = true
	}
	return r, nil
}

// unlessNever returns the error of a read that was forbidden; nil if the account can have made no such
// object: an operator with rights in some namespaces must not wait forever.
func (w *work) unlessNever(ctx context.Context, f found, one *unstructured.Unstructured, err error) error {
	kind := one.GroupVersionKind()
	mapping, mapErr := w.engine.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if mapErr != nil {
		return err
	}
	in := kindIn{GroupVersionResource: mapping.Resource}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		in.namespace = cmp.Or(one.GetNamespace(), w.namespace)
	}
	may, mayErr := f.mayMake(ctx, in)
	if mayErr == nil && !may {
		return nil
	}
	return err
}

// recorded is an object that a record names.
type recorded struct {
	*unstructured.Unstructured

	hook bool
}

// recordedObjects returns the objects and hooks of the last and of the deployed revision: those of the records, or
// those that the ledger names where a record is lost. It leaves out objects with the policy keep.
func recordedObjects(h release.History) (all []recorded, err error) {
	add := func(objects []*unstructured.Unstructured, hook bool) {
		for _, one := range objects {
			if !chartobjects.IsKept(one) {
				all = append(all, recorded{one, hook})
			}
		}
	}
	parse := func(text string, hook bool) {
		objects, parseErr := manifest.Parse(text)
		err = errors.Join(err, parseErr)
		add(objects, hook)
	}
	for revision, record := range h.Kept() {
		if record == nil {
			add(objectsOf(revision.Objects), false)
			add(objectsOf(revision.Hooks), true)
			continue
		}
		parse(record.Manifest, false)
		for _, hook := range record.Hooks {
			parse(hook.Manifest, true)
		}
	}
	return all, err
}

func objectsOf(names []order.Object) (all []*unstructured.Unstructured) {
	for _, one := range names {
		all = append(all, release.Object(one))
	}
	return all
}

// mustRemove reports whether the object is a child of the CR that the garbage collector does not delete
// with it. Helm leaves the objects of hooks.
func (w *work) mustRemove(live metav1.Object) bool {
	return !release.Refers(live, w.seal.Owner) && release.Linked(live, w.seal.Owner)
}

// add adds an object that is not gone, or could not be read.
func (r *remainingObjects) add(name string, live metav1.Object, client dynamic.ResourceInterface, err error) {
	switch {
	case err != nil:
		r.unknown = append(r.unknown, fmt.Sprintf("%s (cannot be read: %v)", name, errors.Unwrap(err)))
	case live.GetDeletionTimestamp() != nil:
		r.waiting = append(r.waiting, name+" (is being deleted"+finalizersOf(live)+")")
	default:
		r.there = append(r.there, object{name, live, client})
	}
}

func finalizersOf(live metav1.Object) string {
	if len(live.GetFinalizers()) == 0 {
		return ""
	}
	return "; it waits for " + strings.Join(live.GetFinalizers(), ", ")
}

// aggregatedAnew reports whether the cluster has created the object again after the release's own was
// deleted. The controller that aggregates ClusterRoles applies one by its name. So it restores a
// deleted role when one of the aggregated roles is deleted. Without rules, the controller has
// written nothing to the object, and managedFields name no writer.
func aggregatedAnew(recorded *unstructured.Unstructured, live metav1.Object) bool {
	const controller = "clusterrole-aggregation-controller"
	rule, _, _ := unstructured.NestedMap(recorded.Object, "aggregationRule")
	return rule != nil && !slices.ContainsFunc(live.GetManagedFields(), func(w metav1.ManagedFieldsEntry) bool { return w.Manager != controller })
}
