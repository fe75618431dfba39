package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/internal/chart/manifest"
	"github.com/ensign-operator/ensign/internal/chart/release"
	"github.com/ensign-operator/ensign/internal/chart/runner"
	"github.com/ensign-operator/ensign/internal/chart/values"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// redacted replaces text in a status that may contain values of Secrets.
const redacted = "# Not shown: values of this release come from Secrets. helm get manifest and helm get notes show what the chart has made of them.\n"

// valuesError is an error about the objects of valuesFrom.
type valuesError struct{ error }

// valueSources are the sources of a release's values beside the watch.
type valueSources struct {
	sources         []watches.ValuesSource
	spec, overrides map[string]any
	// secrets has the values of the Secrets that were read last. mask hides them, and those in the
	// last revision.
	secrets []any
	mask    *values.Mask
	read    observation
}

// secret reports whether values come from Secrets.
func (o *valueSources) secret() bool {
	return slices.ContainsFunc(o.sources, func(s watches.ValuesSource) bool { return s.Kind == watches.SecretKind })
}

// Values returns the values that a run for the CR would give the chart, and a function that hides those of Secrets in
// a text. connection is nil without a cluster: then there must be no valuesFrom.
func (e *Engine) Values(ctx context.Context, cr *unstructured.Unstructured, connection *rest.Config) (map[string]any, func(text string) string, error) {
	prepared, refusal := e.Prepare(ctx, content.Request{Object: cr})
	if refusal != nil {
		return nil, nil, errors.New(refusal.Message)
	}
	w, _ := prepared.(*work)
	err := w.fault
	switch {
	case err != nil || len(w.sources) == 0:
	case connection == nil:
		err = errors.New("valuesFrom: its objects are in the cluster, and there is none")
	default:
		var cluster *manifest.Cluster
		if cluster, err = manifest.NewCluster(connection, e.Mapper, w.namespace); err == nil {
			err = w.readValues(ctx, site{cluster: cluster})
		}
	}
	if err != nil {
		return nil, nil, errors.New(w.mask.Text(err.Error()))
	}
	return w.values.Values, w.mask.Text, nil
}

// prepareValues makes the values, or only those without objects if there are valuesFrom. The objects
// are read when the run begins, so that no change before is missed.
func (w *work) prepareValues(r content.Request) (err error) {
	if w.sources, err = w.engine.Watch.Chart.ValuesSourcesOf(w.cr.Object); err != nil {
		return err
	}
	w.spec, w.overrides = r.Spec(), r.Overrides
	if path := w.engine.Watch.Chart.ValuesFromInSpec; path != nil && w.spec != nil {
		w.spec = runtime.DeepCopyJSON(w.spec)
		unstructured.RemoveNestedField(w.spec, path[1:]...) // It is for the manager alone.
	}
	if len(w.sources) > 0 {
		w.values, err = w.engine.values.Begin(w.spec)
		return err
	}
	w.values, err = w.engine.values.Build(w.spec, w.overrides)
	return err
}

// readValues completes the values by those of the objects, with the account of the run.
func (w *work) readValues(ctx context.Context, s site) error {
	if len(w.sources) == 0 {
		return nil
	}
	from, err := w.readSources(ctx, s)
	if err != nil {
		return err
	}
	merged, err := values.Merge(from)
	if err != nil {
		return valuesError{err}
	}
	made, err := w.engine.values.BuildOver(merged, w.spec, w.overrides)
	switch {
	case errors.Is(err, values.ErrChart):
		return err
	case err != nil:
		return valuesError{err}
	}
	w.values = made
	return nil
}

// readSources reads the objects from the CR's own namespace, and from then on hides the values of
// Secrets.
func (w *work) readSources(ctx context.Context, s site) (found []values.From, err error) {
	w.secrets, w.read = nil, observation{}
	defer func() { w.mask = values.NewMask(w.secrets...) }()
	read := map[string]*unstructured.Unstructured{}
	for _, source := range w.sources {
		object, known := read[source.Kind+"/"+source.Name]
		if !known {
			if object, err = w.readSource(ctx, s, source); err != nil {
				return nil, err
			}
			read[source.Kind+"/"+source.Name] = object
		}
		data, there, err := dataOf(object, source)
		switch {
		case err != nil:
			return nil, valuesError{fmt.Errorf("valuesFrom: %s: %w", source, err)}
		case !there && source.Optional:
			continue
		case object == nil:
			return nil, valuesError{fmt.Errorf("valuesFrom: %s %q not found in the namespace %s; the resource runs again when it exists", source.Kind, source.Name, w.cr.GetNamespace())}
		case !there:
			return nil, valuesError{fmt.Errorf("valuesFrom: the %s %q has no key %q; the resource runs again when it has", source.Kind, source.Name, source.Key)}
		}
		from := values.From{ValuesSource: source, Data: data}
		found = append(found, from)
		if err := values.Check(found); err != nil { // Nothing is parsed before, nor is more read.
			w.secrets = append(w.secrets, string(data))
			return nil, valuesError{err}
		}
		if source.Kind == watches.SecretKind {
			w.secrets = append(w.secrets, from.Shown())
		}
	}
	return found, nil
}

// readSource returns the object of a source with the needed parts only; nil if there is none.
func (w *work) readSource(ctx context.Context, s site, source watches.ValuesSource) (*unstructured.Unstructured, error) {
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	if source.Kind == watches.SecretKind {
		resource.Resource = "secrets"
	}
	object, err := s.cluster.Client.Resource(resource).Namespace(w.cr.GetNamespace()).Get(ctx, source.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		w.read.add(resource, source.Kind, w.cr.GetNamespace(), source.Name, "", "")
		return nil, nil //nolint:nilnil // There is none.
	case err != nil:
		return nil, fmt.Errorf("valuesFrom: read the %s %q: %w", source.Kind, source.Name, err)
	}
	w.read.add(resource, source.Kind, w.cr.GetNamespace(), source.Name, object.GetUID(), object.GetResourceVersion())
	kept := &unstructured.Unstructured{Object: map[string]any{}}
	for _, other := range w.sources {
		for _, field := range []string{"data", "binaryData"} {
			if text, has, _ := unstructured.NestedString(object.Object, field, other.Key); has {
				_ = unstructured.SetNestedField(kept.Object, text, field, other.Key) // Nothing is in the way.
			}
		}
	}
	return kept, nil
}

// dataOf returns the data of an object at the source's key. A Secret has all of its data in base64,
// a ConfigMap only that in binaryData.
func dataOf(object *unstructured.Unstructured, source watches.ValuesSource) (data []byte, there bool, err error) {
	if object == nil {
		return nil, false, nil
	}
	encoded := "binaryData"
	if source.Kind == watches.SecretKind {
		encoded = "data"
	} else if text, has, _ := unstructured.NestedString(object.Object, "data", source.Key); has {
		return []byte(text), true, nil
	}
	text, has, _ := unstructured.NestedString(object.Object, encoded, source.Key)
	if !has {
		return nil, false, nil
	}
	if data, err = base64.StdEncoding.DecodeString(text); err != nil {
		return nil, false, errors.New("it is not valid base64") // The error of base64 quotes a byte.
	}
	return data, true, nil
}

// waiting returns the result of a run that lacks values. The next run begins when one of the objects
// changes.
func (w *work) waiting(ctx context.Context, err error) content.Result {
	result := irreconcilable(ctx, err)
	if result.Outcome.Verdict == content.Failed {
		w.log(ctx).Info("Waiting for values", "message", w.mask.Text(result.Outcome.Message))
		result.Outcome.Reason, result.WaitingForObject = runner.ReasonInvalidValues, true
	}
	return result
}

// maskPrevious hides the texts in the values of the last and of the deployed revision that are not in the
// present values: they may be former values of a Secret. now is the CR's spec where the present values
// are not known.
func (w *work) maskPrevious(h release.History, now map[string]any) {
	if !w.secret() {
		return
	}
	hidden := slices.Clone(w.secrets)
	for _, r := range []*release.Release{h.Last, h.Deployed} {
		if r != nil {
			hidden = append(hidden, without(r.Config, now))
		}
	}
	w.mask = values.NewMask(hidden...)
}

// without returns the texts of a tree that are not at the same place in the other one.
func without(value, other any) any {
	switch v := value.(type) {
	case map[string]any:
		fields, _ := other.(map[string]any)
		left := map[string]any{}
		for key, inner := range v {
			left[key] = without(inner, fields[key])
		}
		return left
	case []any:
		elements, _ := other.([]any)
		var left []any
		for i, inner := range v {
			var same any
			if i < len(elements) {
				same = elements[i]
			}
			left = append(left, without(inner, same))
		}
		return left
	case string:
		if v != other {
			return v
		}
	}
	return nil
}

// hide removes the values of Secrets from a result. It cannot tell which parts of manifest and notes
// have them, so it hides both if there are such values.
func (w *work) hide(result content.Result) content.Result {
	if !w.secret() {
		return result
	}
	result.Outcome.Message = w.mask.Text(result.Outcome.Message)
	result.Missing = slices.Clone(result.Missing)
	for i := range result.Missing {
		result.Missing[i] = w.mask.Text(result.Missing[i])
	}
	result.Conditions = slices.Clone(result.Conditions)
	for i := range result.Conditions {
		c := &result.Conditions[i]
		if c.Type == deployedType && c.Message != "" {
			c.Message = redacted
		}
		c.Message = w.mask.Text(c.Message)
	}
	if shown, has := result.Fields[deployedRelease].(map[string]any); has {
		shown["manifest"] = redacted
	}
	return result
}
