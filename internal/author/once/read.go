package once

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/author/kinds"
	"github.com/ensign-operator/ensign/internal/watches"
)

// subject is a CR with its watch.
type subject struct {
	cr    *unstructured.Unstructured
	watch watches.Watch
	// owned is true if the cluster has the CR, so that it can own the objects that runs create.
	owned bool
	// notes say how the run differs from that of a manager.
	notes []string
}

// reader reads the CR before each run.
type reader struct {
	options Options
	client  client.Client // nil without a cluster
	watches []watches.Watch
	// last is the CR as it was read last.
	last *unstructured.Unstructured
}

// notStored is the UID of a CR that the cluster does not have. The modules that check owners
// (module_utils/ownership.py) take objects without an owner for its own, because nothing that its
// runs create can have one.
const notStored types.UID = "00000000-0000-0000-0000-000000000000"

func (r *reader) read(ctx context.Context) (subject, error) {
	s, err := r.find(ctx)
	if err != nil {
		return s, err
	}
	return r.complete(s)
}

// complete returns the subject of a run, or why run-once does not run its content.
func (r *reader) complete(s subject) (subject, error) {
	switch {
	case !s.watch.ContentKind().Once:
		return s, fmt.Errorf("the content of %s is a chart, which only a manager runs, because it keeps the records of releases: make run starts one here. ensign diff shows what it would change, run-once --vars the chart's values", s.watch.GVK.GroupKind())
	case r.options.Finalize && s.watch.Finalizer == nil:
		return s, fmt.Errorf("--finalize: the watch of %s in watches.yaml has no finalizer", s.watch.GVK.Kind)
	case r.options.Status && !s.owned:
		return s, fmt.Errorf("--status: the cluster has no %s %s: apply it first", s.watch.GVK.Kind, client.ObjectKeyFromObject(s.cr))
	}
	if s.cr.GetUID() == "" {
		s.cr.SetUID(notStored)
	}
	if !s.owned {
		s.notes = append(s.notes, "the cluster does not have this object, so the objects that the run creates get no owner reference: delete them yourself; deleting the resource will not")
	}
	if slices.Equal(keys(r.last), keys(s.cr)) {
		s.notes = nil // They were said before the run before.
	}
	r.last = s.cr
	return s, nil
}

// keys identify an object; none for nil.
func keys(cr *unstructured.Unstructured) []string {
	if cr == nil {
		return nil
	}
	return []string{string(cr.GetUID()), cr.GetKind(), cr.GetNamespace(), cr.GetName()}
}

func (r *reader) find(ctx context.Context) (subject, error) {
	if r.options.File == "" {
		return r.fromCluster(ctx)
	}
	cr, err := readFile(r.options, r.watches)
	if err != nil {
		return subject{}, err
	}
	index := slices.IndexFunc(r.watches, func(w watches.Watch) bool { return w.GVK == cr.GroupVersionKind() })
	s := subject{cr: cr, watch: r.watches[index]}
	if r.client == nil {
		s.useNamespace(r.options.Namespace)
		return s, r.undefined(cr)
	}
	return r.asStored(ctx, s)
}

// fromCluster gets the CR that Options.Name names.
func (r *reader) fromCluster(ctx context.Context) (subject, error) {
	kind, name, err := kinds.Split(r.options.Name)
	if err != nil || name == "" {
		return subject{}, fmt.Errorf("%q is not KIND/NAME, such as %s/sample", r.options.Name, strings.ToLower(r.watches[0].GVK.Kind))
	}
	watch, err := kinds.Of(kind, r.watches)
	if err != nil {
		return subject{}, err
	}
	cr := &unstructured.Unstructured{}
	cr.SetGroupVersionKind(watch.GVK)
	key := types.NamespacedName{Name: name}
	namespaced, err := r.client.IsObjectNamespaced(cr)
	if meta.IsNoMatchError(err) {
		return subject{}, fmt.Errorf("the cluster does not serve %s: install its CustomResourceDefinition, or give the object by -f", watch.GVK)
	}
	if namespaced {
		key.Namespace = r.options.Namespace
	}
	if err == nil {
		err = r.client.Get(ctx, key, cr)
	}
	if err != nil {
		err = fmt.Errorf("get %s %s: %w", watch.GVK.Kind, strings.TrimPrefix(key.String(), "/"), err)
		if apierrors.IsNotFound(err) {
			err = fmt.Errorf("%w; -n names another namespace, and -f takes one from a file", err)
		}
		return subject{}, err
	}
	return subject{cr: cr, watch: watch, owned: true}, nil
}

// useNamespace sets the namespace of a CR that names none.
func (s *subject) useNamespace(namespace string) {
	if s.cr.GetNamespace() == "" {
		s.cr.SetNamespace(namespace)
	}
}

// asStored returns the CR of a file as the API server would store it, with the defaults of
// its schema, by a request that changes nothing. Fields that the kind does not have are refused, as
// kubectl does: without that the API server drops them.
func (r *reader) asStored(ctx context.Context, s subject) (subject, error) {
	namespaced, err := r.client.IsObjectNamespaced(s.cr)
	switch {
	case meta.IsNoMatchError(err):
		s.useNamespace(r.options.Namespace)
		s.notes = append(s.notes, fmt.Sprintf("the cluster does not serve %s, so the schema of the kind is not applied: no defaults, and of validation only that the project's CRD has each field", s.watch.GVK))
		return s, r.undefined(s.cr)
	case err != nil:
		return s, fmt.Errorf("ask the API server for %s: %w", s.watch.GVK, err)
	case namespaced:
		s.useNamespace(r.options.Namespace)
	default:
		s.cr.SetNamespace("")
	}
	strict := client.WithFieldValidation(r.client, metav1.FieldValidationStrict)
	live, stored := s.cr.DeepCopy(), s.cr.DeepCopy()
	switch err = r.client.Get(ctx, client.ObjectKeyFromObject(s.cr), live); {
	case err == nil:
		s.owned = true
		stored = overlaid(live, s.cr)
		err = strict.Update(ctx, stored, client.DryRunAll)
	case apierrors.IsNotFound(err):
		if err = strict.Create(ctx, stored, client.DryRunAll); err == nil {
			stored.SetUID("") // It is another one in each answer.
		}
	}
	switch unknown := unknownFields(err); {
	case err == nil:
		s.cr = stored
	case len(unknown) > 0:
		return s, r.refuse(s.cr, unknown)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err):
		return s, fmt.Errorf("%s: the API server would refuse it: %w", r.options.File, err)
	default:
		if err := r.undefined(s.cr); err != nil {
			return s, err
		}
		if s.owned {
			s.cr = overlaid(live, s.cr)
		}
		s.notes = append(s.notes, fmt.Sprintf("the schema of the kind is not applied (no defaults, no validation): %v", err))
	}
	return s, nil
}

// overlaid returns the object of the cluster with the spec, labels and annotations of the
// file.
func overlaid(live, file *unstructured.Unstructured) *unstructured.Unstructured {
	cr := live.DeepCopy()
	for name, value := range file.Object {
		if !slices.Contains([]string{"metadata", "status", "kind", "apiVersion"}, name) {
			cr.Object[name] = value
		}
	}
	cr.SetLabels(file.GetLabels())
	cr.SetAnnotations(file.GetAnnotations())
	return cr
}
