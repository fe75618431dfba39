package engine

import (
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// diffOf returns the difference of two objects as a unified diff of their YAML, in which values of Secrets are replaced.
func diffOf(live, applied *unstructured.Unstructured, mask func(string) string) string {
	live, applied = plain(live), plain(applied)
	changed := changedKeys(live, applied)
	for _, object := range []*unstructured.Unstructured{live, applied} {
		if isSecret(object) {
			redact(object)
		}
	}
	for _, key := range changed {
		_ = unstructured.SetNestedField(applied.Object, "(redacted, another value)", "data", key)
	}
	hide := func(text string) string { // The line feeds say that the text is whole.
		return strings.TrimSuffix(strings.TrimPrefix(mask("\n"+text+"\n"), "\n"), "\n")
	}
	for name, value := range applied.Object {
		applied.Object[name] = redactTexts(value, live.Object[name], hide)
	}
	for name, value := range live.Object {
		live.Object[name] = redactTexts(value, nil, hide)
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: linesOf(live), B: linesOf(applied), FromFile: "live", ToFile: "after", Context: 3,
	})
	if err != nil {
		return err.Error()
	}
	return text
}

// redactTexts redacts the texts of a value one by one: YAML breaks long ones into lines, and escapes
// characters. A text that differs from the former one and looks the same gets a note.
func redactTexts(value, former any, hide func(string) string) any {
	switch value := value.(type) {
	case map[string]any:
		fields, _ := former.(map[string]any)
		for name, inner := range value {
			value[name] = redactTexts(inner, fields[name], hide)
		}
	case []any:
		entries, _ := former.([]any)
		for i, inner := range value {
			var before any
			if i < len(entries) {
				before = entries[i]
			}
			value[i] = redactTexts(inner, before, hide)
		}
	case string:
		text := hide(value)
		if before, is := former.(string); is && before != value && text != value && text == hide(before) {
			return text + " (another value)"
		}
		return text
	}
	return value
}

// changedKeys returns the keys of Secrets that both have with different values.
func changedKeys(live, applied *unstructured.Unstructured) (keys []string) {
	before, _, _ := unstructured.NestedMap(live.Object, "data")
	after, _, _ := unstructured.NestedMap(applied.Object, "data")
	for key, value := range after {
		if was, had := before[key]; had && applied.GetKind() == "Secret" && !equality.Semantic.DeepEqual(was, value) {
			keys = append(keys, key)
		}
	}
	return keys
}

// plain returns a copy of an object without the fields that the API server sets; an empty one for nil.
func plain(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return &unstructured.Unstructured{Object: map[string]any{}}
	}
	object = &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object.Object)}
	delete(object.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	return object
}

func linesOf(object *unstructured.Unstructured) []string {
	if len(object.Object) == 0 {
		return nil
	}
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		return []string{err.Error()}
	}
	return slices.Collect(strings.Lines(string(text)))
}
