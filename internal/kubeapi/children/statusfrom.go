package children

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
)

// ChildField is a field of a child.
type ChildField struct {
	Kind string
	// NameFor returns the child's name for the CR with a name.
	NameFor func(cr string) string
	// Path is one that the Transformer keeps.
	Path string
}

// StatusFrom returns the fields of children that the status of a CR shows, by the key of the status; nil for
// a field that the child does not have. It has no entry where the child's kind is not watched, or not yet.
// If two groups have a kind of this name, the first one that has the field counts.
func (c *Children) StatusFrom(watch schema.GroupVersionKind, name types.NamespacedName) map[string]any {
	cr := ledger.CR{Kind: watch.GroupKind(), NamespacedName: name}
	c.mu.Lock()
	defer c.mu.Unlock()
	resources := slices.SortedFunc(maps.Keys(c.kinds), func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) })
	found := map[string]any{}
	for key, field := range c.watches[cr.Kind].StatusFrom {
		for _, resource := range resources {
			f := c.kinds[resource]
			if _, used := f.uses[cr.Kind]; !used || f.kind.Kind != field.Kind {
				continue
			}
			value, known := f.fieldOf(cr, field)
			if !known {
				delete(found, key)
				break
			}
			if found[key] == nil {
				found[key] = value
			}
		}
	}
	return found
}

// fieldOf returns a field of a child. known is false until the informer has the child's namespace. The
// caller must hold the lock.
func (f *watchedKind) fieldOf(cr ledger.CR, field ChildField) (value any, known bool) {
	namespace := cr.Namespace
	if !f.kind.Namespaced {
		namespace = ""
	}
	informer, ok := f.informerFor(namespace)
	if !ok || !informer.Synced() {
		return nil, false
	}
	object, _, err := informer.Store().GetByKey(storeKey(namespace, field.NameFor(cr.Name)))
	if kept, ok := object.(*strip.Object); err == nil && ok && f.owns(cr, kept) {
		return kept.Fields[field.Path], true
	}
	return nil, true
}

// fieldsChange reports whether a change of a child may change fields that the status of its CR shows.
func (f *watchedKind) fieldsChange(cr ledger.CR, before, after *strip.Object) bool {
	fieldsOf := func(object *strip.Object) map[string]any {
		if object == nil {
			return nil
		}
		return object.Fields
	}
	return len(f.children.watches[cr.Kind].StatusFrom) > 0 && !maps.Equal(fieldsOf(before), fieldsOf(after))
}
