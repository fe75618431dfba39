package safevars

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// use is one way in which content uses a variable, as testdata/uses tells it.
type use struct {
	Use      string            `json:"use"`
	Files    map[string]string `json:"files"`
	Play     map[string]any    `json:"play"`
	Tasks    []any             `json:"tasks"`
	Handlers []any             `json:"handlers"`
	// OwnRun is set where the text may end the run before its first task, and
	// where all variables are used at once.
	OwnRun bool `json:"own_run"`
	// Never says why not even an unmarked text is executed.
	Never string `json:"never"`
}

// kind is a way to write a text that may be executed.
type kind struct{ name, text string }

func kinds() []kind {
	return []kind{
		{"expression", `{{ lookup('pipe', 'COMMAND') }}`},
		{"statement", `{% if lookup('pipe', 'COMMAND') %}{% endif %}`},
		{"bare", `lookup('pipe', 'COMMAND') == 'x'`},
		{"document", `{"k": "{{ lookup('pipe', 'COMMAND') }}"}`},
		{"delimiters", "#jinja2: variable_start_string:'[[', variable_end_string:']]'\n[[ lookup('pipe', 'COMMAND') ]]"},
	}
}

// trial is one use of one kind of text.
type trial struct {
	use  use
	kind kind
	id   string
}

func (c trial) variable() string { return "cr_" + c.id }

// fill writes the trial's variable and name into a copy of a part of its use.
func (c trial) fill(part any) any {
	switch part := part.(type) {
	case string:
		return c.text(part)
	case []any:
		filled := make([]any, len(part))
		for i := range part {
			filled[i] = c.fill(part[i])
		}
		return filled
	case map[string]any:
		filled := make(map[string]any, len(part))
		for key, value := range part {
			filled[c.text(key)] = c.fill(value)
		}
		return filled
	default:
		return part
	}
}

func (c trial) text(text string) string {
	text = regexp.MustCompile(`\bCR\b`).ReplaceAllString(text, c.variable())
	return strings.ReplaceAll(text, "ID", c.id)
}

// block holds the trial's tasks. Whatever becomes of them, the next trial comes,
// after a task that tells that this one is over.
func (c trial) block() map[string]any {
	return map[string]any{
		"block":              c.fill(c.use.Tasks),
		"rescue":             []any{map[string]any{"debug": map[string]any{"msg": "{{ ansible_failed_result }}"}}},
		"always":             []any{c.end()},
		"ignore_unreachable": true,
	}
}

func (c trial) end() map[string]any {
	return map[string]any{"name": "end of " + c.id, "debug": map[string]any{"msg": "x"}}
}

// play is the trial's own one.
func (c trial) play() map[string]any {
	play := newPlay()
	maps.Copy(play, c.fill(c.use.Play).(map[string]any))
	if len(c.use.Tasks) > 0 {
		play["tasks"] = []any{c.block()}
	} else if _, ok := play["tasks"]; !ok {
		play["tasks"] = []any{c.end()}
	}
	return play
}

func newPlay() map[string]any { return map[string]any{"hosts": "localhost", "gather_facts": false} }

// playbook makes plays of trials: one of those that are tasks, then the others'.
func playbook(trials []trial) []any {
	tasks, handlers, plays := []any{}, []any{}, []any{}
	for _, c := range trials {
		if c.use.Play != nil {
			plays = append(plays, c.play())
			continue
		}
		tasks = append(tasks, c.block())
		handlers = append(handlers, c.fill(c.use.Handlers).([]any)...)
	}
	first := newPlay()
	first["tasks"], first["handlers"] = tasks, handlers
	return append([]any{first}, plays...)
}

// writeProject writes the trials' playbook and files.
func writeProject(t *testing.T, project string, trials []trial) {
	t.Helper()
	text, err := json.Marshal(playbook(trials))
	if err != nil {
		t.Fatal(err)
	}
	// The line in front makes it YAML, in which keys may be templates too.
	write(t, filepath.Join(project, "uses.yml"), append([]byte("---\n"), text...))
	for _, c := range trials {
		for name, text := range c.use.Files {
			write(t, filepath.Join(project, c.text(name)), []byte(c.text(text)))
		}
	}
}

// usesObject is a custom resource with the trials' texts, whose commands leave
// markers in a directory.
func usesObject(trials []trial, markers string) map[string]any {
	spec := map[string]any{}
	for _, c := range trials {
		spec[c.variable()] = strings.ReplaceAll(c.kind.text, "COMMAND", "touch "+filepath.Join(markers, c.id))
	}
	return map[string]any{"metadata": map[string]any{"name": "uses", "namespace": "default"}, "spec": spec}
}

// readTrials gives every kind of text to the uses of testdata/uses: to one use
// in so many, or to all whose name the regular expression in $SAFEVARS_USES
// matches, which may also match the name of their file.
func readTrials(t *testing.T, one int) []trial {
	t.Helper()
	named, err := regexp.Compile(os.Getenv("SAFEVARS_USES"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/uses/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no uses (error %v)", err)
	}
	var trials []trial
	number := 0
	for _, file := range slices.Sorted(slices.Values(files)) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var uses []use
		if err := yaml.UnmarshalStrict(text, &uses); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i, u := range uses {
			number++
			if named.String() == "" && i%one != 0 || !named.MatchString(strings.TrimSuffix(filepath.Base(file), ".yml")+": "+u.Use) {
				continue
			}
			for j, k := range kinds() {
				trials = append(trials, trial{use: u, kind: k, id: fmt.Sprintf("%d_%d", number, j)})
			}
		}
	}
	return trials
}
