package values

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/watches"
)

// from returns an object with the data, which goes to the path.
func from(data string, path ...string) From {
	return From{watches.ValuesSource{Kind: "Secret", Name: "s", ValuesAt: watches.ValuesAt{Key: "k", TargetPath: path}}, []byte(data)}
}

func TestMerge(t *testing.T) {
	for why, test := range map[string]struct {
		objects []From
		want    map[string]any
		wantErr string
	}{
		"none":                              {want: map[string]any{}},
		"empty text is an empty mapping":    {objects: []From{from(""), from("# nothing\n"), from("null")}, want: map[string]any{}},
		"later ones are stronger":           {objects: []From{from("a: {b: 1, c: [1, 2]}"), from("a: {c: [3]}")}, want: map[string]any{"a": map[string]any{"b": int64(1), "c": []any{int64(3)}}}},
		"a path is made":                    {objects: []From{from("p", "a", "b")}, want: map[string]any{"a": map[string]any{"b": "p"}}},
		"a path goes into what is there":    {objects: []From{from("a: {c: 1}"), from("p", "a", "b")}, want: map[string]any{"a": map[string]any{"b": "p", "c": int64(1)}}},
		"a path goes over null":             {objects: []From{from("a: null"), from("p", "a", "b")}, want: map[string]any{"a": map[string]any{"b": "p"}}},
		"a text stays one, with its commas": {objects: []From{from("k1:9092,k2:9092", "a"), from("3", "b"), from("true", "c"), from(`{"a": "b"}`, "d"), from("a\n", "e")}, want: map[string]any{"a": "k1:9092,k2:9092", "b": "3", "c": "true", "d": `{"a": "b"}`, "e": "a\n"}},
		"a path through a text":             {objects: []From{from("a: secretly"), from("p", "a", "b")}, wantErr: `set "a" to`},
		"a path into a list":                {objects: []From{from("a: {b: [secretly]}"), from("p", "a", "b", "c")}, wantErr: `set "a.b" to`},
		"a list":                            {objects: []From{from("[secretly]")}, wantErr: "is not a YAML mapping"},
		"a text":                            {objects: []From{from("secretly")}, wantErr: "is not a YAML mapping"},
		"no YAML":                           {objects: []From{from("a: b\nc: *secretly")}, wantErr: "is not a YAML mapping"},
		"no YAML in a line":                 {objects: []From{from("a: b\n\tsecretly: x\n b")}, wantErr: "at line"},
		"many bytes from few":               {objects: []From{from("a: &a [secretly, secretly, secretly, secretly, secretly, secretly, secretly, secretly]\n" + aliases(9))}, wantErr: "too many aliases"},
		"no text":                           {objects: []From{from("a: secretly\xff")}, wantErr: "not text in UTF-8"},
		"no text at a path":                 {objects: []From{from("secretly\x00", "a")}, wantErr: "not text in UTF-8"},
		"too many entries":                  {objects: []From{from("a: [secretly" + strings.Repeat(",b: ", maxEntries) + "]")}, wantErr: "commas and brackets together"},
		"many lines of a text at a path":    {objects: []From{from(strings.Repeat("\n", maxEntries+1), "a")}, want: map[string]any{"a": strings.Repeat("\n", maxEntries+1)}},
		"too much together":                 {objects: []From{from(strings.Repeat("a", 1<<20), "a"), from(strings.Repeat("a", 1<<20), "b"), from("a", "c")}, wantErr: "more than 2 MiB together"},
	} {
		t.Run(why, func(t *testing.T) {
			got, err := Merge(test.objects)
			if err != nil && strings.Contains(err.Error(), "secretly") {
				t.Errorf("the error shows what is in the object: %v", err)
			}
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("got %v", err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v: %s", err, diff)
			}
		})
	}
}

// aliases returns lines each of which has the one before eight times.
func aliases(lines int) string {
	var all strings.Builder
	for i := range lines {
		before := string(rune('a' + i))
		fmt.Fprintf(&all, "%c: &%c [*%s, *%s, *%s, *%s, *%s, *%s, *%s, *%s]\n", 'b'+i, 'b'+i, before, before, before, before, before, before, before, before)
	}
	return all.String()
}
