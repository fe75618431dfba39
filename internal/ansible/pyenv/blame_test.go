package pyenv

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatOfTheEnvironmentStopsTheStart(t *testing.T) {
	const works = `echo '{"event": "runner_on_ok", "event_data": {"task": "canary", "res": {"msg": ["{{ 6*7 }}", "{{ 6*7 }}"]}}}'`
	// failsIf is a program that fails where the shell's condition holds.
	failsIf := func(condition, otherwise string) string {
		return "if " + condition + "; then echo what went wrong >&2; exit 250; fi; " + otherwise
	}
	for why, test := range map[string]struct {
		environ          []string
		inspection, play string
		want, wantNot    string
	}{
		"a plugin that is not there": {
			environ: []string{"ANSIBLE_FORKS=5", "ANSIBLE_STDOUT_CALLBACK=nosuch"}, play: failsIf(`[ -n "$ANSIBLE_STDOUT_CALLBACK" ]`, works),
			want: `did not run with the environment variable ANSIBLE_STDOUT_CALLBACK="nosuch", and does without: exit status 250: what went wrong`, wantNot: "ANSIBLE_FORKS",
		},
		"two of them": {
			environ: []string{"ANSIBLE_FORKS=many", "ANSIBLE_STRATEGY=nosuch"}, play: failsIf(`[ -n "$ANSIBLE_STRATEGY$ANSIBLE_FORKS" ]`, works),
			want: `with each of the environment variable ANSIBLE_FORKS="many", the environment variable ANSIBLE_STRATEGY="nosuch", and does without them`,
		},
		"a configuration file that nothing names": {
			play: failsIf(`[ -z "$ANSIBLE_CONFIG" ]`, works), want: "with an ansible.cfg in the home directory or in /etc/ansible",
		},
		"the project's configuration file": {
			environ: []string{"ANSIBLE_CONFIG=/p/ansible.cfg"}, play: failsIf(`[ "$ANSIBLE_CONFIG" = /p/ansible.cfg ]`, works),
			want: `did not run with the settings of "/p/ansible.cfg", and does without: exit status 250`,
		},
		"nothing of it: it fails without variables, too": {
			environ: []string{"ANSIBLE_FORKS=5"}, play: failsIf("true", ""), want: "did not run: exit status 250: what went wrong", wantNot: "ANSIBLE_FORKS",
		},
		"Python's own variables": {
			environ: []string{"PYTHONHOME=/nowhere"}, inspection: failsIf(`[ -n "$PYTHONHOME" ]`, installed("2.21.5", "2.4.3")),
			want: `fails with the environment variable PYTHONHOME="/nowhere", and does without: exit status 250: what went wrong`,
		},
		"a value that is long": {
			environ: []string{"ANSIBLE_X=" + strings.Repeat("x", 1000)}, play: failsIf(`[ -n "$ANSIBLE_X" ]`, works),
			want: `ANSIBLE_X="xxx`, wantNot: strings.Repeat("x", 500),
		},
	} {
		t.Run(why, func(t *testing.T) {
			dir := t.TempDir()
			if test.inspection == "" {
				test.inspection = installed("2.21.5", "2.4.3")
			}
			fakeEnv(t, filepath.Join(dir, ".venv"), test.inspection, test.play)
			env, err := Find(Search{Dir: dir, Environ: append([]string{"PATH=/usr/bin:/bin"}, test.environ...)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = env.Inspect(t.Context()); err == nil {
				err = env.Canary(t.Context(), []byte("{}"))
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || test.wantNot != "" && strings.Contains(err.Error(), test.wantNot) {
				t.Errorf("got %v, want %q without %q", err, test.want, test.wantNot)
			}
		})
	}
}

func TestLastWords(t *testing.T) {
	for why, test := range map[string]struct{ said, want string }{
		"of a traceback, in colour, what was wrong": {
			"\x1b[0;31m[ERROR]: no\x1b[0m\r\nTraceback (most recent call last):\r\n  File \"x\"\r\n\x1b[0;31mTypeError: NoneType takes no arguments\x1b[0m\r\n\x1b[0m",
			"[ERROR]: no\nTypeError: NoneType takes no arguments",
		},
		"whole lines":      {"first line is long\nsecond\nthird", "second\nthird"},
		"all of a few":     {"one\ntwo\n", "one\ntwo"},
		"nothing was said": {"", ""},
	} {
		t.Run(why, func(t *testing.T) {
			limit := 100
			if why == "whole lines" {
				limit = 15
			}
			if got := lastWords(test.said, limit); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
