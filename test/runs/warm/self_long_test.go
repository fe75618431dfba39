//go:build long

package warm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whether plays are the same warm is worth as much as what is seen of them.
func TestWhatDiffersIsSeen(t *testing.T) {
	b := newBench(t, nil)
	base := named(t, "seen")
	b.in(t, base)
	seen := b.see(base, false)
	if diff := cmp.Diff(seen, b.see(base, false)); diff != "" {
		t.Fatalf("the same play differs, - and +:\n%s", diff)
	}
	for what, change := range map[string][2]string{
		"a word of a result":               {"said: one", "said: two"},
		"a name of a task":                 {"name: say", "name: tell"},
		"a task more":                      {"- ping:", "- ping:\n- ping:"},
		"the order of tasks":               {"- ping:\n- meta: noop\n- debug: {msg: between}", "- debug: {msg: between}\n- meta: noop\n- ping:"},
		"a warning":                        {"warn: ''", "warn: careful"},
		"a number":                         {"number: 12345678", "number: 12345679"},
		"a type":                           {"number: 12345678", "number: '12345678'"},
		"a file's content":                 {"content: before", "content: behind"},
		"a file's mode":                    {`mode: "0640"`, `mode: "0644"`},
		"a file's name":                    {"/kept", "/left"},
		"where a link goes":                {"src: here", "src: there"},
		"a file in the home directory":     {"test -d ~", "touch ~/f"},
		"a file among the play's own":      {"test -d .", "touch {{ playbook_dir }}/f"},
		"a task that fails and is ignored": {"exit 0", "exit 1"},
		"an exit code that is ignored":     {"exit 4", "exit 5"},
		"a failure":                        {"never: false", "never: true"},
	} {
		t.Run(what, func(t *testing.T) {
			b.For(t)
			changed := base.with(t, change[0], change[1])
			if cmp.Equal(seen, b.see(changed, false)) {
				t.Error("it is not seen")
			}
		})
	}
}
