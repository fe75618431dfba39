package children

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/reduce"
)

// ChildField is a field of a child.
type ChildField struct {
	Kind string
	// NameFor returns the child's name for the CR with a name.
	NameFor func(cr string) string
	// Path is one that the Reducer keeps.
	Path string
}

// StatusFrom returns the fields of children that the status of a CR shows, by the key of the status; nil for
// a field that the child does not have. It has no entry where the child's kind is not watched, or not yet.
func (c *Children) StatusFrom(watch schema.GroupVersionKind, name types.NamespacedName) map[string]any {
	cr := ledger.CR{Kind: watch.GroupKind(), NamespacedName: name}
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]any{}
	for key, field := range c.watches[cr.Kind].StatusFrom {
		for _, f := range c.kinds {
			if _, used := f.uses[cr.Kind]; used && f.kind.Kind == field.Kind {
				f.addField(cr, key, field, found)
			}
		}
	}
	return found
}

// addField adds a field of a child. The caller must hold the lock.
func (f *followedKind) addField(cr ledger.CR, key string, field ChildField, found map[string]any) {
	namespace := cr.Namespace
	if !f.kind.Namespaced {
		namespace = ""
	}
	informer, ok := f.informerFor(namespace)
	if !ok || !informer.Live() {
		return
	}
	found[key] = nil
	object, _, err := informer.Store().GetByKey(storeKey(namespace, field.NameFor(cr.Name)))
	if kept, ok := object.(*reduce.Object); err == nil && ok && f.owns(cr, kept) {
		found[key] = kept.Fields[field.Path]
	}
}

// fieldsChange reports whether a change of a child changes what the status of its CR may show.
func (f *followedKind) fieldsChange(cr ledger.CR, before, after *reduce.Object) bool {
	fieldsOf := func(object *reduce.Object) map[string]any {
		if object == nil {
			return nil
		}
		return object.Fields
	}
	return len(f.children.watches[cr.Kind].StatusFrom) > 0 && !maps.Equal(fieldsOf(before), fieldsOf(after))
}
