package extravars

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// expected returns the variables for a valid object.
func expected(object map[string]any, o Options) map[string]any {
	object = maps.Clone(object)
	metadata, _ := object["metadata"].(map[string]any)
	if metadata != nil {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		object["metadata"] = metadata
	}
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	spec, _ := object["spec"].(map[string]any)
	all := map[string]any{}
	for key, value := range spec {
		if name := named(key, o); actionFor(name, o) == allow {
			all[name] = renamed(value, o)
		}
	}
	all["ansible_operator_meta"] = map[string]any{"name": name, "namespace": namespace}
	all["_example_com_widget"] = object
	if all["_example_com_widget_spec"] = any(spec); spec == nil {
		all["_example_com_widget_spec"] = map[string]any{}
	}
	want := map[string]any{}
	for key, value := range all {
		want[key] = mark(value, o.MarkUnsafe)
	}
	maps.Copy(want, o.Vars)
	if o.Finalizing {
		maps.Copy(want, o.FinalizerVars)
	}
	return want
}

func named(key string, o Options) string {
	if !o.SnakeCase {
		return key
	}
	name, _ := SnakeCase(key)
	return name
}

func renamed(value any, o Options) any {
	switch v := value.(type) {
	case map[string]any:
		copied := map[string]any{}
		for key, member := range v {
			copied[named(key, o)] = renamed(member, o)
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i := range v {
			copied[i] = renamed(v[i], o)
		}
		return copied
	}
	return value
}

func mark(value any, untrusted bool) any {
	switch v := value.(type) {
	case map[string]any:
		copied := map[string]any{}
		for key, member := range v {
			copied[key] = mark(member, untrusted)
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i := range v {
			copied[i] = mark(v[i], untrusted)
		}
		return copied
	case string:
		if untrusted {
			return marked(v)
		}
	}
	return value
}

// offence returns why Build must refuse the object, "" if it must not.
func offence(object map[string]any, o Options) string {
	object = maps.Clone(object)
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		object["metadata"] = metadata
	}
	for key, value := range object {
		if why := offending(key, value, key == "spec", 1); why != "" {
			return why
		}
	}
	spec, ok := object["spec"].(map[string]any)
	if text, _ := json.Marshal(object["spec"]); len(text) > 5<<20 || jsonSize(object["spec"]) > 1<<20 {
		return "the spec is too large"
	}
	if !ok {
		return ""
	}
	for key := range spec {
		name := named(key, o)
		for _, prefix := range []string{"ansible_", "_ansible_", "__ansible_"} {
			if strings.HasPrefix(name, prefix) {
				return fmt.Sprintf("%q steers Ansible", key)
			}
		}
		if o.RefuseSops && strings.HasPrefix(name, "sops_") ||
			slices.Contains([]string{"inventory_hostname", "inventory_hostname_short", "inventory_dir", "inventory_file", "group_names", "omit"}, name) {
			return fmt.Sprintf("%q steers Ansible", key)
		}
	}
	return ambiguous(spec, o, true)
}

// offending returns why a key or value is refused at any level, "" if it is not.
func offending(key string, value any, spec bool, depth int) string {
	switch {
	case strings.HasPrefix(key, "__ansible_"), !utf8.ValidString(key):
		return fmt.Sprintf("the key %q is reserved or broken", key)
	case spec && strings.Trim(key, " ") == "":
		return "a key is blank"
	}
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return "a text is not UTF-8"
		}
	case map[string]any:
		if depth > 64 {
			return "it is too deep"
		}
		for key, member := range v {
			if why := offending(key, member, spec, depth+1); why != "" {
				return why
			}
		}
	case []any:
		if depth > 64 {
			return "it is too deep"
		}
		for _, element := range v {
			if why := offending("element", element, spec, depth+1); why != "" {
				return why
			}
		}
	}
	return ""
}

// ambiguous returns why the keys of a map are refused: two become the same name, or
// one becomes a reserved name. It skips top-level fields that Build drops.
func ambiguous(value any, o Options, top bool) string {
	switch v := value.(type) {
	case map[string]any:
		seen := map[string]string{}
		for key, member := range v {
			name := named(key, o)
			if other, twice := seen[name]; twice {
				return fmt.Sprintf("%q and %q are one name", key, other)
			}
			if seen[name] = key; strings.HasPrefix(name, "__ansible_") {
				return fmt.Sprintf("%q becomes reserved", key)
			}
			if why := ambiguous(member, o, false); why != "" && !(top && actionFor(name, o) == drop) {
				return why
			}
		}
	case []any:
		for _, element := range v {
			if why := ambiguous(element, o, false); why != "" {
				return why
			}
		}
	}
	return ""
}
