package watches

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func TestAWatchThatAProgramMakes(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{"play.yml": "[]"})
	kind := []Field{{"group", "Group", "g.io"}, {"version", "Version", "v1"}, {"kind", "Kind", "Widget"}}
	with := func(fields ...Field) []Field { return append(kind[:3:3], fields...) }
	for why, test := range map[string]struct {
		fields []Field
		custom *ContentKind
		check  func(Watch) any
		want   any
	}{
		"what the file has": {
			with(Field{"playbook", "Path", "play.yml"}, Field{"timeout", "Timeout", "90s"}, Field{"vars", "Vars", map[string]any{"a": 1, "b": []string{"c"}, "d": "${HOME}"}}),
			nil, func(w Watch) any { return []any{w.Content.Playbook, w.Timeout, w.Vars, w.Line, w.MarkUnsafe} },
			[]any{filepath.Join(dir, "play.yml"), 90 * time.Second, map[string]any{"a": int64(1), "b": []any{"c"}, "d": "${HOME}"}, 0, true},
		},
		"defaults as those of the file": {
			with(Field{"playbook", "Path", "play.yml"}), nil,
			func(w Watch) any {
				return []any{w.Timeout, w.SnakeCaseParameters, w.MaxRunnerArtifacts, w.Selector.String()}
			},
			[]any{time.Hour, true, 20, labels.Everything().String()},
		},
		"a kind of content of the program's": {
			with(Field{"finalizer", "Finalizer", map[string]any{"name": "a.b/c"}}), &ContentKind{ChecksEachPeriod: true},
			func(w Watch) any { return []any{w.ContentKind().ChecksEachPeriod, w.Finalizer.Name, w.ManageStatus} },
			[]any{true, "a.b/c", true},
		},
	} {
		t.Run(why, func(t *testing.T) {
			watch, err := Make("ensign.Playbook", test.fields, test.custom, Search{Dir: dir, LookupEnv: func(string) (string, bool) { return "replaced", true }})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, test.check(watch)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsOfAWatchThatAProgramMakesNameItsFields(t *testing.T) {
	_, err := Make("ensign.Role", []Field{
		{"version", "Version", "v1"}, {"kind", "Kind", "9"}, {"role", "Name", "nowhere"}, {"maxConcurrentReconciles", "MaxConcurrentReconciles", -1},
		{"references", "References", []any{map[string]any{"version": "v1", "kind": "Secret", "name": "a b"}}}, {"chart", "Chart", "c"},
	}, nil, Search{Dir: t.TempDir()})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"ensign.Role: Kind: ", "ensign.Role: MaxConcurrentReconciles: found \"-1\"; write a whole number of 1 or more", `ensign.Role: References: name: "a b" is not a path`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%s", want, err)
		}
	}
	if _, err := Make("ensign.Role", []Field{{"vars", "Vars", func() {}}}, nil, Search{}); err == nil || !strings.Contains(err.Error(), "ensign.Role: Vars: the value has no form in JSON") {
		t.Error(err)
	}
}
