package objects

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// leave copies the live values of fields that are not the chart's into desired: fields that the
// cluster fills, that other managers may change, or that other managers added in lists that are one
// value for the API server. before is the object as the chart had it before.
func (a *Applier) leave(desired, live, before *unstructured.Unstructured, kept []Pointer) {
	for _, pointer := range ByCluster(desired, a.Scaled, a.Namespace) {
		keep(desired.Object, live.Object, pointer)
	}
	a.Ignored.KeepIgnored(desired, live, before)
	for _, pointer := range kept {
		keep(desired.Object, live.Object, pointer)
	}
	was := before.Object
	if desired.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "ServiceAccount"}) {
		keepEntriesOf(desired.Object, was, live.Object, "imagePullSecrets")
	}
	if _, err := scheme.Scheme.New(desired.GroupVersionKind()); err != nil { // A kind that is not built in.
		all := fieldsOf(live, func(*metav1.ManagedFieldsEntry) bool { return true })
		for name, value := range desired.Object {
			if !isIdentity(name) {
				element := fieldpath.FieldNameElement(name)
				keepAdded(value, was[name], live.Object[name], all.WithPrefix(element), all.Members.Has(element))
			}
		}
	}
}

// keepEntriesOf keeps the entries that other managers added to a list of objects, as OpenShift adds pull secrets
// to each ServiceAccount. For the API server such a list is one value: each apply would remove them.
func keepEntriesOf(desired, before, live map[string]any, field string) {
	wanted, _ := desired[field].([]any)
	was, _ := before[field].([]any)
	there, _ := live[field].([]any)
	lacks := func(list []any) func(any) bool {
		return func(entry any) bool {
			return !slices.ContainsFunc(list, func(one any) bool { return equality.Semantic.DeepEqual(one, entry) })
		}
	}
	if len(wanted) == 0 {
		return
	}
	kept := slices.Clone(wanted)
	if !slices.ContainsFunc(wanted, lacks(there)) {
		kept = nil // They stay where they are.
	}
	for _, entry := range there {
		if isWanted := !lacks(wanted)(entry); isWanted && kept != nil && !lacks(kept)(entry) || !isWanted && !lacks(was)(entry) {
			continue
		}
		kept = append(kept, runtime.DeepCopyJSONValue(entry))
	}
	desired[field] = kept
}

// keepAdded keeps the fields that other managers added to entries of lists that are one value for the API server:
// otherwise each apply would remove such a field, and another controller would add it again. held are the managed
// fields below the value; isLeaf is true if it is managed as one value.
func keepAdded(desired, before, live any, held *fieldpath.Set, isLeaf bool) {
	switch desired := desired.(type) {
	case map[string]any:
		was, _ := before.(map[string]any)
		there, _ := live.(map[string]any)
		for name, value := range desired {
			element := fieldpath.FieldNameElement(name)
			keepAdded(value, was[name], there[name], held.WithPrefix(element), held.Members.Has(element))
		}
	case []any:
		if isLeaf || held.Empty() { // Otherwise it has keys, so that a field has its own owner.
			addFields(desired, before, live)
		}
	}
}

// fillNulls replaces the chart's unchanged nulls by the live values, and reports whether there were any. Such a
// value may be a default of the cluster that cannot be removed, such as the class of a PVC. The applier may own
// it, so that an apply without the field would remove it.
func fillNulls(desired, before, live any) (filled bool) {
	eachObject(desired, before, live, func(desired, before, live map[string]any) {
		for name, value := range desired {
			if value == nil && before[name] == nil && live[name] != nil {
				desired[name], filled = runtime.DeepCopyJSONValue(live[name]), true
			}
		}
	})
	return filled
}

// addFields copies the fields from the live object that the chart neither has nor had, at any depth.
func addFields(desired, before, live any) {
	eachObject(desired, before, live, func(desired, before, live map[string]any) {
		for name, value := range live {
			_, has := desired[name]
			if _, had := before[name]; !has && !had {
				desired[name] = runtime.DeepCopyJSONValue(value)
			}
		}
	})
}

// eachObject calls change with each JSON object in the chart's value, and with its counterparts in the chart's former
// value and in the live value, which are nil where there are none. The inner objects come first.
func eachObject(desired, before, live any, change func(desired, before, live map[string]any)) {
	switch desired := desired.(type) {
	case map[string]any:
		was, _ := before.(map[string]any)
		there, _ := live.(map[string]any)
		for name, value := range desired {
			eachObject(value, was[name], there[name], change)
		}
		change(desired, was, there)
	case []any:
		was, _ := before.([]any)
		there, _ := live.([]any)
		for i, entry := range desired {
			eachObject(entry, counterpartOf(desired, i, was), counterpartOf(desired, i, there), change)
		}
	}
}

// counterpartOf returns the entry of list that corresponds to an entry of desired; nil if there is none, or
// if only the position could tell, in lists of different lengths.
func counterpartOf(desired []any, i int, list []any) any {
	fields, _ := desired[i].(map[string]any)
	_, named := fields["name"].(string)
	if j := counterpart(desired, i, list); j >= 0 && (named || len(desired) == len(list)) {
		return list[j]
	}
	return nil
}

// Line returns the entry of driftIgnore that leaves a field of the object to other managers, for
// people to paste.
func Line(object *unstructured.Unstructured, pointer string) string {
	kind := object.GroupVersionKind()
	group := ""
	if kind.Group != "" {
		group = "group: " + kind.Group + ", "
	}
	if strings.ContainsAny(pointer, " ,[]{}#&*!|>'\"%@:`") {
		pointer = fmt.Sprintf("%q", pointer)
	}
	return fmt.Sprintf("{kind: %s, %spointers: [%s]}", kind.Kind, group, pointer)
}
