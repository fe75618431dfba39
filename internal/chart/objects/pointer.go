package objects

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Pointer is a JSON pointer, as its reference tokens.
type Pointer []string

var (
	unescape = strings.NewReplacer("~1", "/", "~0", "~") //nolint:gochecknoglobals // A constant.
	escape   = strings.NewReplacer("~", "~0", "/", "~1") //nolint:gochecknoglobals // A constant.
)

// Parse returns the pointer of a text, which watches has checked.
func Parse(text string) Pointer {
	tokens := strings.Split(strings.TrimPrefix(text, "/"), "/")
	for i := range tokens {
		tokens[i] = unescape.Replace(tokens[i])
	}
	return tokens
}

// String returns the pointer's text.
func (p Pointer) String() string {
	var text strings.Builder
	for _, token := range p {
		text.WriteString("/" + escape.Replace(token))
	}
	return text.String()
}

// Has reports whether the object has a field that the pointer names.
func (p Pointer) Has(object map[string]any) bool {
	return len(p.values(object)) > 0
}

// values returns the values of the fields that the pointer names below a value.
func (p Pointer) values(in any) (values []any) {
	if len(p) == 0 {
		return []any{in}
	}
	switch in := in.(type) {
	case map[string]any:
		if inner, has := in[p[0]]; has {
			return p[1:].values(inner)
		}
	case []any:
		for _, i := range entries(in, p[0]) {
			values = append(values, p[1:].values(in[i])...)
		}
	}
	return values
}

// entries returns the indexes of the entries of a list that a token names.
func entries(list []any, token string) (found []int) {
	if index, err := strconv.Atoi(token); err == nil {
		if index < 0 || index >= len(list) || strconv.Itoa(index) != token {
			return nil
		}
		return []int{index}
	}
	key, value, named := strings.Cut(token, "=")
	for i, entry := range list {
		fields, _ := entry.(map[string]any)
		if token == "*" || named && fields[key] != nil && fmt.Sprint(fields[key]) == value {
			found = append(found, i)
		}
	}
	return found
}

// keep sets the fields of desired that the pointer names to their live values, and removes those that
// live does not have. It changes nothing if the parent is missing in one of them. It returns desired: a list gets
// another length.
func keep(desired, live any, p Pointer) any {
	switch desired := desired.(type) {
	case map[string]any:
		if live, ok := live.(map[string]any); ok {
			keepKey(desired, live, p)
		}
	case []any:
		if live, ok := live.([]any); ok {
			return keepEntries(desired, live, p)
		}
	}
	return desired
}

func keepKey(desired, live map[string]any, p Pointer) {
	value, isLive := live[p[0]]
	inner, isDesired := desired[p[0]]
	switch {
	case len(p) > 1:
		if isLive && isDesired {
			desired[p[0]] = keep(inner, value, p[1:])
		}
	case isLive:
		desired[p[0]] = runtime.DeepCopyJSONValue(value)
	default:
		delete(desired, p[0])
	}
}

func keepEntries(desired, live []any, p Pointer) []any {
	var gone []int
	for _, i := range entries(desired, p[0]) {
		j := counterpart(desired, i, live)
		switch {
		case j < 0 && len(p) == 1:
			gone = append(gone, i)
		case j < 0:
		case len(p) == 1:
			desired[i] = runtime.DeepCopyJSONValue(live[j])
		default:
			desired[i] = keep(desired[i], live[j], p[1:])
		}
	}
	for _, i := range slices.Backward(gone) {
		desired = slices.Delete(desired, i, i+1)
	}
	return desired
}

// counterpart returns the index in live of an entry of desired: by its name, or else by its index. It
// is -1 where there is none.
func counterpart(desired []any, i int, live []any) int {
	fields, _ := desired[i].(map[string]any)
	name, named := fields["name"].(string)
	switch {
	case named:
		return slices.IndexFunc(live, func(entry any) bool {
			fields, _ := entry.(map[string]any)
			return fields["name"] == name
		})
	case i < len(live):
		return i
	}
	return -1
}

// byNames returns the pointer with the names of list entries instead of their indexes, where they have names: the
// index may change.
func byNames(p Pointer, object map[string]any) Pointer {
	named := slices.Clone(p)
	var in any = object
	for i, token := range p {
		if list, isList := in.([]any); isList {
			found := entries(list, token)
			if len(found) != 1 {
				return named
			}
			in = list[found[0]]
			fields, _ := in.(map[string]any)
			if name, has := fields["name"].(string); has && len(entries(list, "name="+name)) == 1 {
				named[i] = "name=" + name
			}
			continue
		}
		fields, _ := in.(map[string]any)
		in = fields[token]
	}
	return named
}
