package extravars

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestEncodeWritesExactlyThis(t *testing.T) {
	cr := map[string]any{
		"metadata": map[string]any{"name": "n", "annotations": map[string]any{
			"kubectl.kubernetes.io/last-applied-configuration": `{"a":"{{ 1 }}"}`,
		}},
		"spec": map[string]any{"text": "{{ x }}", "list": []any{"a", int64(1), true, nil}},
	}
	o := Options{
		GVK:  schema.GroupVersionKind{Kind: "K"},
		Vars: map[string]any{"trusted": []any{"{{ text }}", map[string]any{"k": "v"}}},
	}
	for why, test := range map[string]struct {
		mark bool
		want string
	}{
		"every string of the object is marked, the watch's are not": {true, "\t\n" +
			`{"__k":{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":{"__ansible_unsafe":"{\"a\":\"{{ 1 }}\"}"}},` +
			`"name":{"__ansible_unsafe":"n"}},"spec":{"list":[{"__ansible_unsafe":"a"},1,true,null],"text":{"__ansible_unsafe":"{{ x }}"}}},` +
			`"__k_spec":{"list":[{"__ansible_unsafe":"a"},1,true,null],"text":{"__ansible_unsafe":"{{ x }}"}},` +
			`"ansible_operator_meta":{"name":{"__ansible_unsafe":"n"},"namespace":{"__ansible_unsafe":""}},` +
			`"list":[{"__ansible_unsafe":"a"},1,true,null],"text":{"__ansible_unsafe":"{{ x }}"},` +
			`"trusted":["{{ text }}",{"k":"v"}]}` + "\n"},
		"unmarked it is plain JSON behind the same lead": {false, "\t\n" +
			`{"__k":{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"a\":\"{{ 1 }}\"}"},` +
			`"name":"n"},"spec":{"list":["a",1,true,null],"text":"{{ x }}"}},` +
			`"__k_spec":{"list":["a",1,true,null],"text":"{{ x }}"},` +
			`"ansible_operator_meta":{"name":"n","namespace":""},` +
			`"list":["a",1,true,null],"text":"{{ x }}",` +
			`"trusted":["{{ text }}",{"k":"v"}]}` + "\n"},
	} {
		t.Run(why, func(t *testing.T) {
			o.MarkUnsafe = test.mark
			for range 20 { // once for each of some orders that Go gives to a map
				got, err := build(t, cr, o).Encode()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, string(got)); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
}

func TestEncodeValues(t *testing.T) {
	for why, test := range map[string]struct {
		value any
		want  string
	}{
		"a float stays a float for Python":                       {1.0, "1.0"},
		"a large float has a form that Python reads":             {1e21, "1e+21"},
		"a negative zero keeps its sign":                         {math.Copysign(0, -1), "-0.0"},
		"the smallest float is exact":                            {math.SmallestNonzeroFloat64, "5e-324"},
		"an integer beyond float precision is exact":             {int64(math.MaxInt64), "9223372036854775807"},
		"a number's own text is kept":                            {json.Number("1.50"), "1.50"},
		"an integer beyond 64 bits stays an integer":             {json.Number("123456789012345678901234567890"), "123456789012345678901234567890"},
		"a plain int comes from Go code":                         {7, "7"},
		"a NUL and line breaks are escaped":                      {"\x00\n\u2028", `{"__ansible_unsafe":"\u0000\n\u2028"}`},
		"what HTML gives a meaning is escaped for no one's harm": {"<&>", `{"__ansible_unsafe":"\u003c\u0026\u003e"}`},
		"an empty text is marked like any other":                 {"", `{"__ansible_unsafe":""}`},
		"an empty map stays a map":                               {map[string]any{}, "{}"},
		"an empty list stays a list":                             {[]any{}, "[]"},
	} {
		t.Run(why, func(t *testing.T) {
			text, err := build(t, object(map[string]any{"v": test.value}), options()).Encode()
			if err != nil {
				t.Fatal(err)
			}
			var all map[string]json.RawMessage
			if err := json.Unmarshal(text, &all); err != nil {
				t.Fatal(err)
			}
			if got := string(all["v"]); got != test.want {
				t.Errorf("encoded %s, want %s", got, test.want)
			}
		})
	}
}

func TestEncodeStartsWithTheBytesThatYAMLRefuses(t *testing.T) {
	for _, vars := range []Variables{{}, build(t, object(nil), options())} {
		text, err := vars.Encode()
		if err != nil || !bytes.HasPrefix(text, []byte("\t\n{")) || !json.Valid(text) {
			t.Errorf("encoded %q, %v", text, err)
		}
	}
}

func TestEncodeRefusesTrustedValuesOutsideJSON(t *testing.T) {
	for why, value := range map[string]any{
		"an infinity is not JSON":      math.Inf(1),
		"NaN is not JSON":              math.NaN(),
		"a Go type has no JSON form":   struct{}{},
		"a nested fault is found, too": map[string]any{"l": []any{math.NaN()}},
	} {
		t.Run(why, func(t *testing.T) {
			o := options()
			o.Vars = map[string]any{"bad_one": value}
			if _, err := build(t, object(nil), o).Encode(); err == nil || !strings.Contains(err.Error(), `"bad_one"`) {
				t.Errorf("error %v does not name the variable", err)
			}
		})
	}
}
