package boundedyaml_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/boundedyaml"
)

func TestAliasesOfYAMLAreBounded(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for name, test := range map[string]struct {
		document string
		want     string // "" where it is refused
	}{
		"none":                     {"a: b", `{"a":"b"}`},
		"a few":                    {"a: &a [b]\nc: *a\nd: {<<: &e {f: g}, h: *a}", `{"a":["b"],"c":["b"],"d":{"f":"g","h":["b"]}}`},
		"what only looks like one": {"a: |\n  rm *.log\n  int *p\n" + "b: '*c'", `{"a":"rm *.log\nint *p\n","b":"*c"}`},
		"very many":                {"a: &a x\nb: [" + strings.Repeat("*a ,", 700_000) + "]", ""},
		"of a long text":           {"a: &a " + long + "\nb: [" + strings.Repeat("*a ,", 1000) + "]", ""},
		"of aliases":               {"a: &a " + long + "\nb: &b [*a ,*a ,*a ,*a ,*a ,*a ]\nc: &c [*b ,*b ,*b ,*b ,*b ,*b ]\nd: [*c ,*c ,*c ]", ""},
		"of keys":                  {"a: &a " + long[:100] + "\nb: &b {" + long + ": c}\nd: [" + strings.Repeat("*b ,", 100) + "]", ""},
		"of what they are part of": {"a: &a [*a ]", ""},
		"more than YAML's reader takes, of little": {"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [" + strings.Repeat("*a ,", 300) + "]\nc: [" + strings.Repeat("*b ,", 300) + "]", ""},
		"in JSON, where there are none":            {`{"a":"` + strings.Repeat("*a ,", 300_000) + `"}`, `{"a":"` + strings.Repeat("*a ,", 300_000) + `"}`},
		"that stand for nothing":                   {"a: *b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := boundedyaml.ToJSON([]byte(test.document))
			runtime.ReadMemStats(&after)
			if string(got) != test.want || (err != nil) != (test.want == "") {
				t.Errorf("want %q, got %.100q, %v", test.want, got, err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 30<<20 {
				t.Errorf("%d bytes were allocated for %d of YAML", used, len(test.document))
			}
		})
	}
}

func TestEntriesOfARequestAreBounded(t *testing.T) {
	many := strings.Repeat("a,", 250_001)
	for name, test := range map[string]struct {
		document string
		fails    bool
	}{"YAML": {"[" + many + "a]", true}, "a text in JSON": {`{"a":"` + many + `"}`, false}} {
		if _, err := boundedyaml.RequestToJSON([]byte(test.document)); (err != nil) != test.fails {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := boundedyaml.ToJSON([]byte("a: |\n  " + many)); err != nil { // As in a chart's manifest.
		t.Error(err)
	}
}
