package extravars

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// preamble prevents Ansible from reading the file as YAML. Ansible does that if its
// JSON decoder fails, and in YAML a marked string would be an ordinary map that holds
// a trusted string. A TAB at the start of a line is white space in JSON and an error
// in YAML. The error text quotes that line; the LF keeps the values out of it.
const preamble = "\t\n"

// Encode wraps an untrusted string in these; Ansible's decoder unwraps and tags it.
const (
	unsafeOpen  = `{"__ansible_unsafe":`
	unsafeClose = `}`
)

// Encode returns the content of env/extravars: TAB, LF, one JSON object with sorted
// keys. Equal variables give equal bytes. It fails only if Options.Vars or
// Options.FinalizerVars hold a value that JSON cannot express.
func (v Variables) Encode() ([]byte, error) {
	untrusted := encoder{markUnsafe: v.markUnsafe}
	trusted := encoder{}
	all := maps.Clone(v.untrusted)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, v.trusted)

	out := append([]byte(preamble), '{')
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendString(out, name)
		out = append(out, ':')
		var err error
		if value, ok := v.trusted[name]; ok {
			out, err = trusted.append(out, value)
		} else {
			out, err = untrusted.append(out, v.untrusted[name])
		}
		if err != nil {
			return nil, fmt.Errorf("encode variable %q: %w", name, err)
		}
	}
	return append(out, '}', '\n'), nil
}

// encoder appends JSON. If markUnsafe is set, it wraps every string value. It never
// wraps keys, because Ansible does not evaluate keys as templates.
type encoder struct {
	markUnsafe bool
}

func (e encoder) append(out []byte, value any) ([]byte, error) {
	switch value := value.(type) {
	case map[string]any:
		return e.appendMap(out, value)
	case []any:
		return e.appendList(out, value)
	case string:
		return e.appendStringValue(out, value), nil
	case float64:
		return appendFloat(out, value)
	case nil:
		return append(out, "null"...), nil
	case bool:
		return strconv.AppendBool(out, value), nil
	case int:
		return strconv.AppendInt(out, int64(value), 10), nil
	case int64:
		return strconv.AppendInt(out, value, 10), nil
	case json.Number:
		return append(out, value...), nil
	default:
		return nil, fmt.Errorf("a %T cannot be encoded as JSON", value)
	}
}

func (e encoder) appendStringValue(out []byte, text string) []byte {
	if !e.markUnsafe {
		return appendString(out, text)
	}
	return append(appendString(append(out, unsafeOpen...), text), unsafeClose...)
}

func (e encoder) appendMap(out []byte, m map[string]any) ([]byte, error) {
	out = append(out, '{')
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendString(out, key), ':')
		var err error
		if out, err = e.append(out, m[key]); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func (e encoder) appendList(out []byte, l []any) ([]byte, error) {
	out = append(out, '[')
	for i, element := range l {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = e.append(out, element); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

// appendFloat always writes a decimal point or an exponent, because Python reads 1 as
// an integer.
func appendFloat(out []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%v is not a finite number", f)
	}
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return append(out, text...), nil
}

// appendString cannot fail: every Go string has a JSON form.
func appendString(out []byte, s string) []byte {
	text, _ := json.Marshal(s)
	return append(out, text...)
}

// jsonSize returns the size in bytes of a cleaned value as JSON.
func jsonSize(value any) int {
	text, _ := encoder{}.append(nil, value)
	return len(text)
}
