package extravars

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// marked is a string that Ansible would take for untrusted.
type marked string

// What the options byte of FuzzEncode switches on.
const (
	fuzzSnakeCase byte = 1 << iota
	fuzzMark
	fuzzFinalizing
	fuzzSops
)

// FuzzEncode builds and encodes the variables of an object, decodes them as Ansible
// does, and compares them with the expected ones. nest is the number of levels by
// which the spec is nested deeper, raw is a string that JSON may not be able to
// express, and each block over 240 makes the spec 96 KiB larger.
func FuzzEncode(f *testing.F) {
	f.Add(`{"kind":"Widget","metadata":{"name":"w","namespace":"ns","managedFields":[{"manager":"m"}]},"spec":{"size":3,"fooBar":"{{ x }}"}}`, "raw", fuzzSnakeCase|fuzzMark, uint8(1), uint8(0))
	f.Fuzz(func(t *testing.T, text, raw string, options, nest, blocks uint8) {
		var object map[string]any
		if utiljson.Unmarshal([]byte(text), &object) != nil {
			return
		}
		object["spec"] = fuzzSpec(object["spec"], raw, nest, blocks)
		o := Options{
			GVK:       schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
			SnakeCase: options&fuzzSnakeCase != 0, MarkUnsafe: options&fuzzMark != 0,
			Finalizing: options&fuzzFinalizing != 0, RefuseSops: options&fuzzSops != 0,
			Vars: map[string]any{"watch_var": "{{ size }}", "size": int64(7)}, FinalizerVars: map[string]any{"watch_var": "final"},
		}
		vars, err := Build(object, o)
		if o.Finalizing && err != nil {
			t.Fatalf("a finalizer's run is refused: %v", err)
		}
		why := offence(object, o)
		if err != nil {
			checkRefusal(t, err, why)
			return
		}
		encoded := encodeTwice(t, vars, object, o)
		got := ansibleReads(t, encoded)
		if o.Finalizing {
			checkFinalizing(t, got, o)
		}
		if why != "" {
			if !o.Finalizing {
				t.Fatalf("accepted, although %s", why)
			}
			return
		}
		// cmp takes exponential time for nested lists.
		if want := expected(object, o); !reflect.DeepEqual(want, got) {
			t.Errorf("Ansible reads %.2000v, want %.2000v", got, want)
		}
	})
}

func fuzzSpec(spec any, raw string, nest, blocks uint8) any {
	for i := range int(nest) {
		if i%2 == 1 {
			spec = map[string]any{"deep": spec}
		} else {
			spec = map[string]any{"list": []any{spec}}
		}
	}
	fields, ok := spec.(map[string]any)
	if !ok {
		return spec
	}
	if raw != "" {
		fields["raw"] = []any{raw, map[string]any{raw: raw}}
	}
	if blocks >= 0xf0 { // Seldom: large ones take long.
		fields["large"] = strings.Repeat("x", int(blocks-0xf0)*96<<10)
	}
	return fields
}

func checkRefusal(t *testing.T, err error, why string) {
	t.Helper()
	var invalid *InvalidSpecError
	if !errors.As(err, &invalid) || len(invalid.Problems) == 0 || !slices.IsSorted(invalid.Problems[:min(len(invalid.Problems), maxListedProblems)]) {
		t.Fatalf("%#v", err)
	}
	if message := err.Error(); len(message) > 4<<10 || !utf8.ValidString(message) || strings.ContainsFunc(message, func(r rune) bool { return r < ' ' }) {
		t.Errorf("the message cannot be shown: %q", message)
	}
	if why == "" {
		t.Errorf("refused without a reason: %v", err)
	}
}

// encodeTwice makes sure that equal objects give equal bytes.
func encodeTwice(t *testing.T, vars Variables, object map[string]any, o Options) []byte {
	t.Helper()
	encoded, err := vars.Encode()
	if err != nil {
		t.Fatal(err)
	}
	same, err := Build(maps.Clone(object), o)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := same.Encode(); err != nil || !bytes.Equal(encoded, again) {
		t.Fatalf("two encodings differ: %v", err)
	}
	if !bytes.HasPrefix(encoded, []byte("\t\n{")) || bytes.Count(encoded, []byte("\n")) != 2 || !bytes.HasSuffix(encoded, []byte("}\n")) {
		t.Fatalf("the text %.40q … %q may be read as YAML", encoded, encoded[max(0, len(encoded)-9):])
	}
	return encoded
}

// ansibleReads decodes the text as Ansible does: as Python's JSON, with a marked
// string for an object that has the key __ansible_unsafe.
func ansibleReads(t *testing.T, text []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var all any
	if err := decoder.Decode(&all); err != nil {
		t.Fatal(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("there is more behind the object: %v", err)
	}
	read, ok := ansibleValue(t, all).(map[string]any)
	if !ok {
		t.Fatalf("Ansible reads no mapping but %T", all)
	}
	return read
}

func ansibleValue(t *testing.T, value any) any {
	t.Helper()
	switch v := value.(type) {
	case map[string]any:
		if text, ok := v["__ansible_unsafe"].(string); ok && len(v) == 1 {
			return marked(text)
		}
		read := make(map[string]any, len(v))
		for key, member := range v {
			if strings.HasPrefix(key, "__ansible_") {
				t.Fatalf("the key %q would steer Ansible's decoder", key)
			}
			read[key] = ansibleValue(t, member)
		}
		return read
	case []any:
		read := make([]any, len(v))
		for i := range v {
			read[i] = ansibleValue(t, v[i])
		}
		return read
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			f, err := v.Float64()
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		i, err := v.Int64()
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	return value
}

// checkFinalizing checks that a finalizer's run does not get fields with problems.
func checkFinalizing(t *testing.T, got map[string]any, o Options) {
	t.Helper()
	for name := range got {
		if name != "ansible_operator_meta" && actionFor(name, o) == refuse {
			t.Errorf("a finalizer's run gets %q", name)
		}
	}
	if spec, err := json.Marshal(got["_example_com_widget_spec"]); err != nil || len(spec) > 5<<20 {
		t.Errorf("a finalizer's run gets a spec of %d bytes, %v", len(spec), err)
	}
	if got["watch_var"] != "final" {
		t.Errorf("the finalizer's own variable is %v", got["watch_var"])
	}
}
