package objects

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/watches"
)

// Ignored are the fields that other managers may change, from a watch.
type Ignored []Rule

// Rule is one pointer of driftIgnore, for the objects of a kind.
type Rule struct {
	watches.DriftIgnore

	Pointer Pointer
}

// NewIgnored returns the rules of driftIgnore.
func NewIgnored(entries []watches.DriftIgnore) Ignored {
	var rules Ignored
	for _, entry := range entries {
		for _, text := range entry.Pointers {
			rules = append(rules, Rule{entry, Parse(text)})
		}
	}
	return rules
}

// String returns the rule for people.
func (r Rule) String() string {
	kind := r.Kind
	if r.Group != "" {
		kind += "." + r.Group
	}
	if r.Name != "" {
		kind += " " + r.Name
	}
	return fmt.Sprintf("%s of %s", r.Pointer, kind)
}

// Of reports whether the rule is for the object.
func (r Rule) Of(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	return r.Kind == kind.Kind && (r.Group == "" || r.Group == kind.Group) && (r.Name == "" || r.Name == object.GetName())
}

// KeepIgnored gives desired the live values of the fields that other managers may change. before is
// the object as the chart had it before: a field that the chart changes is not kept.
func (rules Ignored) KeepIgnored(desired, live, before *unstructured.Unstructured) {
	for _, rule := range rules {
		if rule.Of(desired) && equality.Semantic.DeepEqual(rule.Pointer.values(desired.Object), rule.Pointer.values(before.Object)) {
			keep(desired.Object, live.Object, rule.Pointer)
		}
	}
}
