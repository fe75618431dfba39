package safevars

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// limit is the time that one run may take on a busy machine.
const limit = 5 * time.Minute

// run is one run of the real ansible-runner in a directory of its own.
type run struct {
	markers string // where executed payloads leave their files
	scratch string // where the content leaves its own
	output  string
	err     error
}

// start runs content with the variables of the object. The arguments choose
// the role or the playbook in testdata.
func start(t *testing.T, c core, object func(markers string) map[string]any, markUnsafe bool, args ...string) run {
	t.Helper()
	dir := t.TempDir()
	r := run{markers: filepath.Join(dir, "markers"), scratch: filepath.Join(dir, "scratch")}
	for _, path := range []string{r.markers, r.scratch, filepath.Join(dir, "env"), filepath.Join(dir, "inventory")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "project"), os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	o := thing(markUnsafe)
	o.Vars = map[string]any{"scratch": r.scratch, "ansible_python_interpreter": c.env.Python}
	write(t, filepath.Join(dir, "env", "extravars"), encode(t, object(r.markers), o))
	write(t, filepath.Join(dir, "inventory", "hosts"), []byte("localhost ansible_connection=local\n"))

	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	roles := filepath.Join(dir, "project", "roles")
	cmd := exec.CommandContext(ctx, c.env.Runner, append([]string{"run", dir, "--json"}, args...)...)
	if slices.Contains(args, "--role") {
		cmd.Args = append(cmd.Args, "--roles-path", roles, "--hosts", "localhost", "--role-skip-facts")
	}
	cmd.Env = []string{
		"PATH=" + c.env.Bin + ":/usr/bin:/bin", "HOME=" + r.scratch, "LC_ALL=C.UTF-8",
		"ANSIBLE_ROLES_PATH=" + roles,
	}
	output, err := cmd.CombinedOutput()
	r.output, r.err = string(output), err
	return r
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// executed are the payloads that ran.
func (r run) executed(t *testing.T) []string {
	t.Helper()
	files, err := os.ReadDir(r.markers)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, file.Name())
	}
	return names
}

// finished fails the test unless the content reached its last task.
func (r run) finished(t *testing.T, last string) {
	t.Helper()
	if r.err == nil && exists(filepath.Join(r.scratch, last)) {
		return
	}
	const most = 6000
	tail := r.output[max(0, len(r.output)-most):]
	t.Fatalf("the run did not reach its end (%v), so it shows nothing:\n%s", r.err, tail)
}

func TestNoTextOfAnObjectRuns(t *testing.T) {
	payloads := sample(append(slices.Clone(templates), other...), everyPayload)
	object := func(markers string) map[string]any { return hostileObject(payloads, markers) }
	onEachCore(t, func(t *testing.T, c core) {
		for why, test := range map[string]struct {
			args []string
			last string
		}{
			"a role that is run by itself":                 {[]string{"--role", "hostile"}, "done"},
			"a playbook, with what only a play can do too": {[]string{"-p", "play.yml"}, "played"},
		} {
			t.Run(why, func(t *testing.T) {
				r := start(t, c, object, true, test.args...)
				r.finished(t, test.last)
				if executed := r.executed(t); len(executed) > 0 {
					t.Errorf("payloads were executed: %q", executed)
				}
			})
		}
	})
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
	onEachCore(t, func(t *testing.T, c core) {
		r := start(t, c, object, false, "-p", "control.yml")
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

// The role itself lets a text run that is not marked, so that its tasks above
// are known to reach the texts.
func TestTheRoleRunsTextsWithoutTheirMarks(t *testing.T) {
	object := func(markers string) map[string]any { return hostileObject(templates[:1], markers) }
	onEachCore(t, func(t *testing.T, c core) {
		r := start(t, c, object, false, "--role", "hostile")
		executed := r.executed(t)
		for _, place := range []string{"list", "map", "nested", "label", "annotation", "status"} {
			if !slices.Contains(executed, place+"-0") {
				t.Errorf("the text in %s was not executed, only %q:\n%s", place, executed, r.output[max(0, len(r.output)-3000):])
			}
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
