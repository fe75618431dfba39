package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	started = `2026-01-02T03:04:05.020Z	INFO	run	run started	{"cr": "demo/db", "generation": 2, "reason": "spec changed", "run": "r1"}` + "\n"
	task    = `2026-01-02T03:04:06.020Z	INFO	run	task	{"cr": "demo/db", "task": "mysql : Look up", "host": "localhost", "outcome": "ok", "seconds": 1.682, "run": "r1"}` + "\n"
	ended   = `2026-01-02T03:04:07.020Z	ERROR	run	run failed	{"cr": "demo/db", "outcome": "Failed", "seconds": 2, "ok": 1, "changed": 0, "failures": 1, "run": "r1"}` + "\n"
)

func TestNext(t *testing.T) {
	tests := map[string]struct {
		log  string
		want []string
	}{
		"each step of a run becomes a short line": {
			log: started + task + ended,
			want: []string{
				"03:04:05  run started for generation 2 (spec changed)",
				"03:04:06  ok       mysql : Look up (1.7 s)",
				"03:04:07  run ended: Failed after 2.0 s; 1 ok, 0 changed, 1 failed",
			},
		},
		"a block is shown as it is": {
			log:  "------ Ansible Task StdOut ------\ndemo/db | fatal: [localhost]: FAILED!\n----------\n",
			want: []string{"------ Ansible Task StdOut ------", "demo/db | fatal: [localhost]: FAILED!", "----------"},
		},
		"another resource's block is left out with its rules": {
			log:  "------ Ansible Task StdOut ------\ndemo/other | fatal\n----------\n" + started,
			want: []string{"03:04:05  run started for generation 2 (spec changed)"},
		},
		"what other resources do is left out": {
			log: `2026-01-02T03:04:05.020Z	INFO	run	task	{"cr": "demo/other", "task": "x", "outcome": "ok", "run": "r2"}` + "\n" +
				"demo/other | fatal\n" +
				`2026-01-02T03:04:05.020Z	INFO	starting	{"version": "dev"}` + "\nnot a record\n",
		},
		"a line that is still being written waits": {log: `2026-01-02T03:04:05.020Z	INFO	run	run started	{"cr": "demo/db"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			j := open(t, test.log)
			got, err := j.Next()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextGoesOnWhereItStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	half := len(started) / 2
	write(t, path, started[:half])
	j, err := Open(path, "demo/db")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	if got, err := j.Next(); err != nil || len(got) != 0 {
		t.Fatalf("got %q, %v of half a line", got, err)
	}
	write(t, path, started[half:]+ended)
	got, err := j.Next()
	if err != nil || len(got) != 2 {
		t.Fatalf("got %q, %v, want the start and the end", got, err)
	}
}

func TestMemory(t *testing.T) {
	j := open(t, started+task+"demo/db | Secret demo/a does not exist\n"+ended)
	if _, err := j.Next(); err != nil {
		t.Fatal(err)
	}
	if j.Ended(2) != 1 || j.Ended(1) != 0 {
		t.Errorf("got %d and %d ended runs of generations 2 and 1, want 1 and 0", j.Ended(2), j.Ended(1))
	}
	if !j.RanTaskOf("mysql") || j.RanTaskOf("my") {
		t.Error("want a task of role mysql, and none of role my")
	}
	if !j.BlockWith("does not exist") || j.BlockWith("run failed") {
		t.Error("want the text of the block, and none of the records")
	}
}

func open(t *testing.T, log string) *Journal {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, log)
	j, err := Open(path, "demo/db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func write(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(text)
	if err != nil || file.Close() != nil {
		t.Fatal(err)
	}
}
