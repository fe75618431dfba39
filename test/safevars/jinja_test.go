package safevars

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/cores"
)

func TestNoTextOfAnObjectRuns(t *testing.T) {
	cores.OnEach(t, func(t *testing.T, c cores.Core) {
		noTextRuns(t, func(t *testing.T, s setup, args ...string) run { return s.start(t, c, args...) })
	})
}

// What holds for new interpreters holds for forks: the marks of untrusted texts are
// made of classes and switches that a server has had since before the run.
func TestNoTextOfAnObjectRunsInAFork(t *testing.T) {
	cores.OnEach(t, func(t *testing.T, c cores.Core) { noTextRuns(t, newStove(t, c).start) })
}

// noTextRuns has content read every place of an object, with marks and then without
// them: texts are templates then, so that the tasks are known to reach them. In a fork
// nothing of the run before has an effect.
func noTextRuns(t *testing.T, start func(t *testing.T, s setup, args ...string) run) {
	t.Helper()
	payloads := sample(append(slices.Clone(templates), other...), everyPayload)
	hostile := setup{object: func(markers string) map[string]any { return hostileObject(payloads, markers) }}
	control := setup{plain: true, object: func(markers string) map[string]any { return hostileObject(templates[:1], markers) }}
	for why, test := range map[string]struct {
		args   []string
		last   string
		places []string // those whose text runs without its mark
	}{
		"a role that is run by itself":                 {[]string{"--role", "hostile"}, "done", []string{"list", "map", "nested", "label", "annotation", "status"}},
		"a playbook, with what only a play can do too": {[]string{"-p", "play.yml"}, "played", []string{"first"}},
	} {
		t.Run(why, func(t *testing.T) {
			r := start(t, hostile, test.args...)
			r.finished(t, test.last)
			if executed := r.executed(t); len(executed) > 0 {
				t.Errorf("payloads were executed: %q", executed)
			}
			r = start(t, control, test.args...)
			executed := r.executed(t)
			for _, place := range test.places {
				if !slices.Contains(executed, place+"-0") {
					t.Errorf("the text in %s was not executed, only %q (%v):\n%s", place, executed, r.err, r.tail())
				}
			}
		})
	}
}

// sample takes one text of so many.
func sample(texts []string, one int) []string {
	var taken []string
	for i := 0; i < len(texts); i += one {
		taken = append(taken, texts[i])
	}
	return taken
}

// The same texts without their marks are templates. This shows that every
// payload would run, and that the markers above would be seen.
func TestTextsRunWithoutTheirMarks(t *testing.T) {
	object := func(markers string) map[string]any {
		return map[string]any{"spec": named("p", texts(templates, markers, "control"))}
	}
	cores.OnEach(t, func(t *testing.T, c cores.Core) {
		r := setup{object: object, plain: true}.start(t, c, "-p", "control.yml")
		r.finished(t, "done")
		executed := r.executed(t)
		for i, payload := range templates {
			if name := fmt.Sprintf("control-%d", i); !slices.Contains(executed, name) {
				t.Errorf("%s was not executed: %q", name, payload)
			}
		}
		if len(executed) < 40 {
			t.Errorf("%d payloads were executed, want at least 40", len(executed))
		}
	})
}

// hostileObject holds the payloads in every place of an object that a role may
// read. Commands leave their markers in dir.
func hostileObject(payloads []string, dir string) map[string]any {
	at := func(place string) []any { return texts(payloads, dir, place) }
	spec := named("p", at("top"))
	spec["first"] = at("first")[0]
	spec["texts"] = at("list")
	spec["by_name"] = named("n", at("map"))
	spec["arguments"] = withoutNUL(at("argument"))
	spec["environment_of_texts"] = named("E", withoutNUL(at("environment")))
	nested, keys, conditions := []any{}, map[string]any{}, []any{}
	for i, text := range at("nested") {
		nested = append(nested, map[string]any{"text": text, "list": []any{[]any{text}}})
		keys[at("key")[i].(string)] = at("keyvalue")[i]
		conditions = append(conditions, map[string]any{"message": at("status")[i]})
	}
	spec["nested"] = map[string]any{"deep": map[string]any{"list": nested}}
	spec["by_key"] = keys
	return map[string]any{
		"apiVersion": "safe.test/v1",
		"kind":       "Thing",
		"metadata": map[string]any{
			"name":        "hostile",
			"namespace":   at("namespace")[0],
			"labels":      named("l", at("label")),
			"annotations": named("a", at("annotation")),
		},
		"spec":   spec,
		"status": map[string]any{"conditions": conditions},
	}
}

// withoutNUL leaves out what no process can be given.
func withoutNUL(texts []any) []any {
	return slices.DeleteFunc(texts, func(text any) bool { return strings.Contains(text.(string), "\x00") })
}
