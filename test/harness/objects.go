package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Define creates kinds, and returns when each of their served versions can be listed,
// as the first that wants to know of it would.
func Define(ctx context.Context, c client.Client, definitions ...*apiextensionsv1.CustomResourceDefinition) error {
	for _, d := range definitions {
		if err := c.Create(ctx, d); err != nil {
			return fmt.Errorf("define %s: %w", d.Name, err)
		}
	}
	for _, d := range definitions {
		for _, version := range d.Spec.Versions {
			if !version.Served {
				continue
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: d.Spec.Group, Version: version.Name, Kind: d.Spec.Names.ListKind})
			var last error
			err := wait.PollUntilContextTimeout(ctx, interval, WaitTimeout, true, func(ctx context.Context) (bool, error) {
				last = c.List(ctx, list, client.Limit(1))
				return last == nil, nil
			})
			if err != nil {
				return errors.Join(fmt.Errorf("wait for %s to be served: %w", d.Name, err), last)
			}
		}
	}
	return nil
}

// Definition returns a namespaced CRD with version v1 whose spec and status take
// anything.
func Definition(kind schema.GroupKind) *apiextensionsv1.CustomResourceDefinition {
	anything := true
	free := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}
	singular := strings.ToLower(kind.Kind)
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + kind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: singular + "s", Singular: singular, Kind: kind.Kind, ListKind: kind.Kind + "List"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": free, "status": free},
				}},
			}},
		},
	}
}

// Custom returns an object of a kind with a CRD of `Definition`.
func Custom(kind schema.GroupKind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(kind.WithVersion("v1"))
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// UIDs notes whose events come until seen is called, which ends the watch.
func UIDs(events watch.Interface) (seen func() []types.UID) {
	ended, all := make(chan struct{}), map[types.UID]bool{}
	go func() {
		defer close(ended)
		for event := range events.ResultChan() {
			if object, ok := event.Object.(metav1.Object); ok {
				all[object.GetUID()] = true
			}
		}
	}()
	return func() []types.UID {
		events.Stop()
		<-ended
		return slices.Collect(maps.Keys(all))
	}
}

// Condition is what a condition of a CR says.
type Condition struct {
	Status, Reason, Message string
	Generation              int64
	// Result is ansibleResult, nil where there is none.
	Result map[string]any
}

// ConditionOf is the CR's condition of a type; the zero value where it has none.
func ConditionOf(object *unstructured.Unstructured, kind string) Condition {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range list {
		c, ok := item.(map[string]any)
		if !ok || c["type"] != kind {
			continue
		}
		text := func(name string) string { s, _ := c[name].(string); return s }
		generation, _ := c["observedGeneration"].(int64)
		result, _ := c["ansibleResult"].(map[string]any)
		return Condition{text("status"), text("reason"), text("message"), generation, result}
	}
	return Condition{}
}
