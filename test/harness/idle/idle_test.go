package idle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlay(t *testing.T) {
	directory := func(variables string) string {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "env"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "env", "extravars"), []byte(variables), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	t.Setenv("JOB_ID", "42")
	for why, test := range map[string]struct {
		args    []string
		played  bool
		wantErr bool
		want    []string // are in the output
	}{
		"another program":         {args: []string{"/a/b/bench", "--json"}},
		"Python, when inspected":  {args: []string{"/a/python3", "-c", "x"}, played: true, want: []string{`"ansible_runner"`}},
		"the presence of Ansible": {args: []string{"ansible-playbook", "--version"}, played: true},
		"a run": {
			args: []string{"ansible-runner", "run", directory("\t\n{}")}, played: true, want: []string{`"job_id":42,"event":"playbook_on_stats"`},
		},
		"the canary": {
			args: []string{"ansible-runner", "run", directory(`{"c": {"__ansible_unsafe": "{{ 6*7 }}"}}`)}, played: true,
			want: []string{`"msg":["{{ 6*7 }}"]`, "playbook_on_stats"},
		},
		"a run of the manager's": {
			args: []string{"/env/bin/python3", "/runs/.program/ensign_run.py", "run", directory("\t\n{}")}, played: true, want: []string{`"job_id":42,"event":"playbook_on_stats"`},
		},
		"a run without a directory": {args: []string{"ansible-runner", "run"}, played: true, wantErr: true},
		"a run without variables":   {args: []string{"ansible-runner", "run", t.TempDir()}, played: true, wantErr: true},
		"variables that are none":   {args: []string{"ansible-runner", "run", directory("x: y")}, played: true, wantErr: true},
	} {
		t.Run(why, func(t *testing.T) {
			var out strings.Builder
			played, err := Play(test.args, &out)
			if played != test.played || (err != nil) != test.wantErr {
				t.Errorf("played %t, error %v", played, err)
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %s in %s", want, out.String())
				}
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	if err := Environment(dir); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got, err := filepath.EvalSymlinks(filepath.Join(dir, "bin", "ansible-runner"))
	if want, _ := filepath.EvalSymlinks(self); err != nil || got != want {
		t.Errorf("%s, error %v", got, err)
	}
	if err := Environment(dir); err == nil {
		t.Error("one was made over another")
	}
}
