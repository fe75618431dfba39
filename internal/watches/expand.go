package watches

import (
	"cmp"
	"regexp"
)

var anyReference = regexp.MustCompile(`\$\{([a-zA-Z_][a-zA-Z0-9_]*)(:-([^}]*))?\}|\$([a-zA-Z_][a-zA-Z0-9_]*)`)

// expandAll replaces $VAR, ${VAR} and ${VAR:-default} in all strings of a JSON value. A string
// stays a string, whatever it becomes. It returns the names of variables that are not set and
// have no default. lookup may be nil: then nothing is replaced.
func expandAll(value any, lookup func(string) (string, bool)) (expanded any, unset []string) {
	if lookup == nil {
		return value, nil
	}
	switch v := value.(type) {
	case string:
		return anyReference.ReplaceAllStringFunc(v, func(reference string) string {
			parts := anyReference.FindStringSubmatch(reference)
			name, hasDefault := cmp.Or(parts[1], parts[4]), parts[2] != ""
			text, set := lookup(name)
			switch {
			case hasDefault:
				return cmp.Or(text, parts[3])
			case !set:
				unset = append(unset, name)
			}
			return text
		}), unset
	case []any:
		for i := range v {
			var missing []string
			v[i], missing = expandAll(v[i], lookup)
			unset = append(unset, missing...)
		}
	case map[string]any:
		for key := range v {
			var missing []string
			v[key], missing = expandAll(v[key], lookup)
			unset = append(unset, missing...)
		}
	}
	return value, unset
}
