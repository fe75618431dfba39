package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/author/kinds"
	"github.com/ensign-operator/ensign/internal/controller/status"
)

// The annotations that control a CR, without their prefix.
const (
	pausedSuffix    = "paused"
	requestedSuffix = "reconcile-requested-at"
	cancelSuffix    = "cancel-requested-at"
)

// Verb is the operation on a CR.
type Verb string

// The verbs.
const (
	Reconcile Verb = "reconcile"
	Suspend   Verb = "suspend"
	Resume    Verb = "resume"
	Cancel    Verb = "cancel"
)

// Order says how to control a CR by its annotations.
type Order struct {
	Verb Verb
	// Request is a new value for the annotation that requests a run, or its end. With Resume it may
	// be "": then the end of the pause alone leads to a run, which Await cannot tell from other
	// runs.
	Request string
}

// ErrUnchanged is returned if the CR is as the order wants it.
var ErrUnchanged = errors.New("nothing to do")

// Names returns the CRs that a target means in a namespace: the one that it names, or all that
// are there.
func Names(ctx context.Context, c client.WithWatch, target Target, namespace string) ([]types.NamespacedName, error) {
	if target.Name != "" {
		return []types.NamespacedName{{Namespace: namespace, Name: target.Name}}, nil
	}
	list, err := View{Client: c}.list(ctx, target, namespace)
	names := make([]types.NamespacedName, len(list))
	for i := range list {
		names[i] = client.ObjectKeyFromObject(&list[i])
	}
	return names, err
}

// Give writes the order into the annotations of the CR, and returns the resource version that has
// it, for Await.
func (o Order) Give(ctx context.Context, c client.WithWatch, kind kinds.Kind, name types.NamespacedName) (version string, err error) {
	cr, err := read(ctx, c, kind, name)
	if err != nil {
		return "", err
	}
	if err := o.check(kind, cr); err != nil {
		return "", err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": o.annotations(kind, cr)}})
	if err != nil {
		return "", err
	}
	if err := c.Patch(ctx, cr, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return "", explained(err, kind, name)
	}
	return cr.GetResourceVersion(), nil
}

// check returns why the order would have no effect.
func (o Order) check(kind kinds.Kind, cr *unstructured.Unstructured) error {
	paused := isPaused(kind, cr)
	switch {
	case o.Verb == Cancel && !status.ShowsRun(cr):
		return fmt.Errorf("%w: its status shows no run", ErrUnchanged)
	case cr.GetDeletionTimestamp() != nil && o.Verb != Resume && o.Verb != Cancel:
		return errors.New("it is being deleted")
	case !kind.Selector.Matches(labels.Set(cr.GetLabels())):
		return errors.New("its labels do not match the selector of the watch, so nothing runs for it")
	case o.Verb == Reconcile && paused:
		return errors.New("it is paused: resume it, which also runs its content")
	case o.Verb == Resume && !paused:
		return fmt.Errorf("%w: it is not paused", ErrUnchanged)
	}
	return nil
}

func isPaused(kind kinds.Kind, cr *unstructured.Unstructured) bool {
	return len(pauses(kind, cr)) > 0
}

// pauses returns the annotations that pause the CR, or may do so.
func pauses(kind kinds.Kind, cr *unstructured.Unstructured) (found []string) {
	watch := watchFor(kind, cr)
	for _, name := range watch.AnnotationNames(pausedSuffix) {
		if value, ok := cr.GetAnnotations()[name]; ok && value != "false" {
			found = append(found, name)
		}
	}
	return found
}

// annotations returns the annotations that the order changes; those that are nil go.
func (o Order) annotations(kind kinds.Kind, cr *unstructured.Unstructured) map[string]any {
	changes := map[string]any{}
	if o.Verb == Resume { // Somebody may have written it below another prefix.
		for _, name := range pauses(kind, cr) {
			changes[name] = nil
		}
	}
	for _, prefix := range prefixesFor(kind, cr) {
		switch o.Verb {
		case Suspend:
			changes[prefix+pausedSuffix] = "true"
		case Resume:
			changes[prefix+pausedSuffix] = nil
		case Cancel:
			changes[prefix+cancelSuffix] = o.Request
		}
		if o.Verb != Suspend && o.Verb != Cancel && o.Request != "" {
			changes[prefix+requestedSuffix] = o.Request
		}
	}
	return changes
}

func read(ctx context.Context, c client.Client, kind kinds.Kind, name types.NamespacedName) (*unstructured.Unstructured, error) {
	cr := emptyOf(kind)
	namespaced, err := c.IsObjectNamespaced(cr)
	if !namespaced {
		name.Namespace = ""
	}
	if err == nil {
		err = c.Get(ctx, name, cr)
	}
	if err != nil {
		return nil, explained(err, kind, name)
	}
	return cr, nil
}

// explained says in the words of people how a request ended.
func explained(err error, kind kinds.Kind, name types.NamespacedName) error {
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the cluster does not serve %s: %w", kind.GVK, ErrNotServed)
	case apierrors.IsNotFound(err) && name.Namespace != "":
		return fmt.Errorf("there is no such %s in namespace %s", kind.GVK.Kind, name.Namespace)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no such %s", kind.GVK.Kind)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("it is not allowed: %w", err)
	}
	return err
}

// over reports whether the order has been carried out, as the CR's status shows it, and
// returns an error if it cannot be any more.
func (o Order) over(kind kinds.Kind, cr *unstructured.Unstructured) (bool, error) {
	running := status.Read(cr, status.Running)
	if o.Verb == Cancel {
		return !status.ShowsRun(cr), nil
	}
	pauses := running.Status == "False" && running.Reason == status.ReasonPaused
	switch {
	case o.Verb == Suspend && !isPaused(kind, cr):
		return false, errors.New("somebody has ended the pause")
	case o.Verb == Suspend:
		return pauses, nil
	case status.Request(cr) == o.Request:
		return true, nil
	case isPaused(kind, cr) && pauses:
		return false, errors.New("somebody has paused it before the run")
	}
	return false, nil
}
