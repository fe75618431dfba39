package once

import (
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"sigs.k8s.io/yaml"
)

// diffOf returns the changes of a task as a unified diff, from its sanitized result; "" if the
// module does not report them. A module reports them by one object or a list of them, with "before"
// and "after" as text or as objects, or with a "prepared" text. It changes the result.
func diffOf(result map[string]any) string {
	var text strings.Builder
	list, isList := result["diff"].([]any)
	if !isList {
		list = []any{result["diff"]}
	}
	for _, entry := range list {
		diff, isMap := entry.(map[string]any)
		if !isMap {
			continue
		}
		if prepared, ok := diff["prepared"].(string); ok {
			text.WriteString(prepared)
			continue
		}
		before, after := asText(diff["before"]), asText(diff["after"])
		unified, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: slices.Collect(strings.Lines(before)), B: slices.Collect(strings.Lines(after)), FromFile: "before", ToFile: "after", Context: 3,
		})
		if err == nil && before != after {
			text.WriteString(unified)
		}
	}
	return strings.TrimRight(text.String(), "\n")
}

func asText(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case map[string]any:
		if len(value) == 0 {
			return ""
		}
		if metadata, ok := value["metadata"].(map[string]any); ok {
			delete(metadata, "managedFields") // managedFields are of no interest, and have times.
		}
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}
