package pyenv

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// script makes an executable file.
func script(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o755)); err != nil {
		t.Fatal(err)
	}
}

// fakeEnv makes an environment's programs in dir/bin. inspection is what its
// Python prints, play what its ansible-runner does.
func fakeEnv(t *testing.T, dir, inspection, play string) string {
	t.Helper()
	bin := filepath.Join(dir, "bin")
	script(t, filepath.Join(bin, "python"), "#!/bin/sh\n"+inspection+"\n")
	script(t, filepath.Join(bin, "ansible-runner"), "#!"+filepath.Join(bin, "python")+"\n")
	script(t, filepath.Join(bin, "ansible-playbook"), "#!/bin/sh\n")
	if play != "" {
		script(t, filepath.Join(bin, "ansible-runner"), "#!/bin/sh\n"+play+"\n")
	}
	return bin
}

func TestFindTakesTheFirstPlace(t *testing.T) {
	tests := map[string]struct {
		have []string // environments, below the test's directory
		want string
	}{
		"the active environment comes first":                   {have: []string{"active", "work/.venv", "onpath", "product/.venv"}, want: "active"},
		"then the working directory's":                         {have: []string{"work/.venv", "onpath", "product/.venv"}, want: "work/.venv"},
		"then the PATH":                                        {have: []string{"onpath", "product/.venv"}, want: "onpath"},
		"then the one that the manager was built beside":       {have: []string{"product/.venv"}, want: "product/.venv"},
		"a relative entry of PATH is one of the working place": {have: []string{"work/rel"}, want: "work/rel"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, have := range test.have {
				fakeEnv(t, filepath.Join(dir, have), "", "")
			}
			got, err := Find(Search{
				Dir:        filepath.Join(dir, "work"),
				Executable: filepath.Join(dir, "product", "bin", "manager"),
				Environ:    []string{"VIRTUAL_ENV=" + dir + "/active", "PATH=:" + dir + "/empty:" + dir + "/onpath/bin:rel/bin"},
			})
			if err != nil {
				t.Fatal(err)
			}
			bin := filepath.Join(dir, test.want, "bin")
			got.environ, got.VirtualEnvError = nil, ""
			if diff := cmp.Diff(Env{Bin: bin, Runner: bin + "/ansible-runner", Python: bin + "/python"}, got, cmp.AllowUnexported(Env{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFindSaysWhereItLookedAndWhatToDo(t *testing.T) {
	dir := t.TempDir()
	half := fakeEnv(t, filepath.Join(dir, "half"), "", "")
	plain := fakeEnv(t, filepath.Join(dir, "plain"), "", "")
	moved := fakeEnv(t, filepath.Join(dir, "moved"), "", "")
	err := errors.Join(
		os.Remove(filepath.Join(half, "ansible-playbook")),
		os.Chmod(filepath.Join(plain, "ansible-runner"), 0o644),
		os.Remove(filepath.Join(moved, "python")),
	)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Find(Search{Dir: dir, Executable: filepath.Join(dir, "bin", "manager"), Environ: []string{"PATH=" + half + ":" + plain + ":" + moved}})
	if err == nil {
		t.Fatal("got no error")
	}
	for _, want := range []string{
		Remedy,
		filepath.Join(dir, ".venv", "bin") + ": no ansible-runner",
		half + ": no ansible-playbook",
		plain + ": ansible-runner is not executable",
		moved + ": the Python of ansible-runner is gone",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q in it", err, want)
		}
	}
	if strings.Count(err.Error(), filepath.Join(dir, ".venv")) != 1 {
		t.Errorf("got %q, want each place once", err)
	}
}

func TestFindTellsOfAnActiveEnvironmentThatDoesNotDo(t *testing.T) {
	dir := t.TempDir()
	fakeEnv(t, filepath.Join(dir, "work", ".venv"), "", "")
	other := fakeEnv(t, filepath.Join(dir, "other"), "", "")
	for active, want := range map[string]string{
		"":             "",
		dir + "/other": "",
		dir + "/mine":  dir + "/mine/bin: no ansible-runner",
	} {
		got, err := Find(Search{Dir: filepath.Join(dir, "work"), Environ: []string{"VIRTUAL_ENV=" + active, "PATH=" + other}})
		if err != nil || got.VirtualEnvError != want {
			t.Errorf("VIRTUAL_ENV=%s: got %q (error %v), want %q", active, got.VirtualEnvError, err, want)
		}
	}
}

func TestInterpreter(t *testing.T) {
	dir := t.TempDir()
	bin, other := filepath.Join(dir, "bin"), filepath.Join(dir, "other")
	script(t, filepath.Join(other, "python3.13"), "")
	script(t, filepath.Join(bin, "python3"), "")
	tests := map[string]struct{ runner, want string }{
		"the first line's, where pip installed for a Python elsewhere": {"#!" + other + "/python3.13\n", other + "/python3.13"},
		"with an option":                       {"#!" + other + "/python3.13 -E\n", other + "/python3.13"},
		"by way of env":                        {"#!/usr/bin/env python3.13\n", other + "/python3.13"},
		"a shell's line, as pyenv's shims are": {"#!/usr/bin/env bash\n", bin + "/python3"},
		"a path too long for the kernel":       {"#!/bin/sh\n'''exec' " + other + "/python3.13\n", bin + "/python3"},
		"a program that is no script":          {"\x7fELF\x02\x01", bin + "/python3"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			runner := filepath.Join(bin, "ansible-runner")
			script(t, runner, test.runner)
			got, err := Search{Environ: []string{"PATH=" + other}}.interpreter(Env{Bin: bin, Runner: runner})
			if err != nil || got != test.want {
				t.Errorf("got %q (error %v), want %q", got, err, test.want)
			}
		})
	}
}

func installed(core, runner string) string {
	return `echo '{"python": "3.13.1", "ansible_core": "` + core + `", "ansible_runner": "` + runner + `", "collections": ["/c"]}'`
}

func TestInspectRefuses(t *testing.T) {
	tests := map[string]struct{ inspection, want string }{
		"an ansible-core that evaluates marked text":  {installed("2.18.19", "2.4.3"), "older than 2.19"},
		"an old one with a large second number":       {installed("1.99.0", "2.4.3"), "older than 2.19"},
		"a version that is none":                      {installed("unknown", "2.4.3"), "older than 2.19"},
		"no ansible-core":                             {installed("", "2.4.3"), "ansible-core is not installed for Python 3.13.1"},
		"no ansible-runner":                           {installed("2.21.5", ""), "ansible-runner is not installed"},
		"a Python that fails, with its last words":    {"echo Traceback >&2; echo 'No module named x' >&2; exit 1", ": No module named x"},
		"a Python that says something else than JSON": {"echo hello", "invalid character"},
		"a client of Kubernetes without the guard":    {strings.Replace(installed("2.21.5", "2.4.3"), "{", `{"unguarded": "the name x is accepted", `, 1), ErrUnguarded.Error() + ": the name x is accepted"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			bin := fakeEnv(t, filepath.Join(dir, ".venv"), test.inspection, "")
			env, err := Find(Search{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			_, err = env.Inspect(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), bin) {
				t.Errorf("got error %v, want one with %q and the place", err, test.want)
			}
		})
	}
}

func TestLookLeavesTheGuardAlone(t *testing.T) {
	dir := t.TempDir()
	const guarded = `[ "$3" = look ] || exit 1; `
	fakeEnv(t, filepath.Join(dir, ".venv"), guarded+installed("2.21.5", "2.4.3"), "")
	env, err := Find(Search{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := env.Look(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := env.Inspect(t.Context()); err == nil {
		t.Error("the guard is not proved")
	}
}

func TestInspectAccepts(t *testing.T) {
	for _, version := range []string{"2.19.0", "2.19.0b1", "2.19", "2.21.5", "2.100.1", "3.0.0.dev0"} {
		t.Run(version, func(t *testing.T) {
			dir := t.TempDir()
			fakeEnv(t, filepath.Join(dir, ".venv"), installed(version, "2.4.3"), "")
			env, err := Find(Search{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			got, err := env.Inspect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := Info{Python: "3.13.1", AnsibleCore: version, AnsibleRunner: "2.4.3", CollectionDirs: []string{"/c"}}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Info{}, "Digest", "stampPaths", "unguarded")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHasCollection(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"env/community/sops", "paths/ansible_collections/a/b", "direct/c/d"} {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	info := Info{CollectionDirs: []string{filepath.Join(dir, "env")}}
	tests := map[string]struct {
		collection string
		want       bool
	}{
		"in the environment":                {"community.sops", true},
		"in a further path":                 {"a.b", true},
		"in a path that is the tree's root": {"c.d", true},
		"not installed":                     {"community.other", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := info.HasCollection(test.collection, filepath.Join(dir, "paths"), filepath.Join(dir, "direct")); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestCanaryFaults(t *testing.T) {
	result := func(msg string) string {
		return `echo '{"event": "runner_on_ok", "event_data": {"task": "canary", "res": {"msg": ` + msg + `}}}'`
	}
	tests := map[string]struct {
		play       string
		wantUnsafe bool
		want       string // "" for no error
	}{
		"both texts as they were":                              {play: result(`["{{ 6*7 }}", "{{ 6*7 }}"]`)},
		"evaluated to a number":                                {play: result(`[42, 42]`), wantUnsafe: true, want: "became 42"},
		"evaluated to text":                                    {play: result(`["42", "42"]`), wantUnsafe: true, want: "became 42"},
		"evaluated only by way of another variable":            {play: result(`["{{ 6*7 }}", "42"]`), wantUnsafe: true, want: "became 42"},
		"nothing printed proves nothing":                       {play: "echo done", want: "printed nothing"},
		"an empty result proves nothing":                       {play: result(`[]`), want: "printed nothing"},
		"another task's result proves nothing":                 {play: strings.Replace(result(`["{{ 6*7 }}"]`), "canary", "other", 1), want: "printed nothing"},
		"a play that fails, even after the right result":       {play: result(`["{{ 6*7 }}"]`) + "; echo 'what went wrong'; exit 4", want: "what went wrong"},
		"an ansible-runner that can't be started":              {play: "exec /does/not/exist", want: "did not run"},
		"it is given the variables, settings and inventory":    {play: `cd "$2" && test -s env/extravars -a -s env/settings -a -s inventory/hosts || exit 9; ` + result(`["{{ 6*7 }}"]`)},
		"it finds ansible-playbook and the manager's settings": {play: `test "$ANSIBLE_SETTING" = 1 && command -v ansible-playbook >/dev/null || exit 9; ` + result(`["{{ 6*7 }}"]`)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TMPDIR", filepath.Join(dir, "tmp"))
			if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
				t.Fatal(err)
			}
			fakeEnv(t, filepath.Join(dir, ".venv"), "", test.play)
			env, err := Find(Search{Dir: dir, Environ: []string{"PATH=/usr/bin:/bin", "ANSIBLE_SETTING=1"}})
			if err != nil {
				t.Fatal(err)
			}
			err = env.Canary(t.Context(), []byte("{}"))
			if got := err == nil; got != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
			if errors.Is(err, ErrUnsafe) != test.wantUnsafe {
				t.Errorf("got error %v, want unsafe: %v", err, test.wantUnsafe)
			}
			if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) > 0 {
				t.Errorf("%v is left (error %v)", left, err)
			}
		})
	}
}
