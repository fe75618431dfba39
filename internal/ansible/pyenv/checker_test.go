package pyenv

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// installedEnv is an environment of programs that count how often they are asked.
type installedEnv struct {
	t        *testing.T
	dir      string
	site     string
	metadata string
}

// newInstalledEnv returns an environment and a Checker that has checked it.
func newInstalledEnv(t *testing.T) (installedEnv, *Checker) {
	t.Helper()
	dir := t.TempDir()
	e := installedEnv{t: t, dir: dir, site: filepath.Join(dir, "site"), metadata: filepath.Join(dir, "site", "ansible_core.dist-info")}
	bin := fakeEnv(t, filepath.Join(dir, ".venv"), "echo asked >> "+dir+"/inspected; cat "+dir+"/inspection",
		"echo asked >> "+dir+`/tried; echo '{"event": "runner_on_ok", "event_data": {"task": "canary", "res": {"msg": ["'"$(cat `+dir+`/answer)"'"]}}}'`)
	e.write("ansible_core.dist-info/RECORD", "x")
	e.answer(CanaryText)
	e.core("2.21.5")
	env, err := Find(Search{Dir: dir, Environ: []string{"PATH=/usr/bin:/bin"}})
	if err != nil || env.Bin != bin {
		t.Fatalf("got %+v, error %v", env, err)
	}
	info, err := env.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := NewChecker(env, info, []byte("{}"))
	if err := c.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e, c
}

func (e installedEnv) file(path, text string) {
	e.t.Helper()
	script(e.t, filepath.Join(e.dir, path), text)
}

func (e installedEnv) write(path, text string) { e.t.Helper(); e.file("site/"+path, text) }

// answer is what the canary's text becomes.
func (e installedEnv) answer(text string) { e.t.Helper(); e.file("answer", text) }

// core is the version of ansible-core that the environment tells of.
func (e installedEnv) core(version string) {
	e.t.Helper()
	e.file("inspection", `{"python": "3.13.1", "ansible_core": "`+version+`", "ansible_runner": "2.4.3", "stamp_paths": ["`+e.site+`", "`+e.metadata+`"]}`)
}

// tried is how often the canary ran.
func (e installedEnv) tried() int {
	e.t.Helper()
	text, err := os.ReadFile(filepath.Join(e.dir, "tried"))
	if err != nil {
		e.t.Fatal(err)
	}
	return strings.Count(string(text), "asked")
}

func (e installedEnv) touch(path string) {
	e.t.Helper()
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		e.t.Fatal(err)
	}
}

func TestWhatIsTriedAgain(t *testing.T) {
	tests := map[string]struct {
		change func(installedEnv)
		want   int // further canaries
	}{
		"nothing has changed":                 {func(installedEnv) {}, 0},
		"a file that no mark tells of":        {func(e installedEnv) { e.file("notes", "x") }, 0},
		"something was installed":             {func(e installedEnv) { e.write("new/x.py", "") }, 1},
		"ansible-core was installed anew":     {func(e installedEnv) { e.touch(e.metadata) }, 1},
		"the interpreter was replaced":        {func(e installedEnv) { e.touch(e.dir + "/.venv/bin/python") }, 1},
		"ansible-runner was replaced":         {func(e installedEnv) { e.touch(e.dir + "/.venv/bin/ansible-runner") }, 1},
		"ansible-playbook has another length": {func(e installedEnv) { e.file(".venv/bin/ansible-playbook", "#!/bin/sh\nexit 0\n") }, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, c := newInstalledEnv(t)
			before := e.tried()
			test.change(e)
			for range 3 {
				if err := c.Check(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := e.tried() - before; got != test.want {
				t.Errorf("the canary ran %d times more, want %d", got, test.want)
			}
		})
	}
}

func TestAChangedEnvironmentThatDoesNot(t *testing.T) {
	tests := map[string]struct {
		spoil, mend func(installedEnv)
		want        string
	}{
		"it evaluates marked text": {
			func(e installedEnv) { e.answer("42"); e.write("faulty.pth", "") },
			func(e installedEnv) { e.answer(CanaryText); e.write("fixed.pth", "") },
			"Ansible evaluated text that is marked as untrusted",
		},
		"its ansible-core is too old": {
			func(e installedEnv) { e.core("2.18.1"); e.write("old", "") },
			func(e installedEnv) { e.core("2.19.0"); e.write("newer", "") },
			"ansible-core 2.18.1 is older than 2.19",
		},
		"its interpreter is gone": {
			func(e installedEnv) { _ = os.Rename(e.dir+"/.venv/bin/python", e.dir+"/python") },
			func(e installedEnv) { _ = os.Rename(e.dir+"/python", e.dir+"/.venv/bin/python") },
			"the Python of ansible-runner is gone",
		},
		"it has another interpreter": {
			func(e installedEnv) {
				_ = os.Rename(e.dir+"/.venv/bin/python", e.dir+"/.venv/bin/python3")
			},
			func(e installedEnv) {
				_ = os.Rename(e.dir+"/.venv/bin/python3", e.dir+"/.venv/bin/python")
			},
			"restart the operator",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, c := newInstalledEnv(t)
			test.spoil(e)
			first := c.Check(t.Context())
			if first == nil || !strings.Contains(first.Error(), test.want) {
				t.Fatalf("got error %v, want %q", first, test.want)
			}
			tried := e.tried()
			if again := c.Check(t.Context()); again == nil || again.Error() != first.Error() || e.tried() != tried {
				t.Errorf("got %v after %d canaries, want the same at once", again, e.tried()-tried)
			}
			test.mend(e)
			if err := c.Check(t.Context()); err != nil {
				t.Errorf("got error %v of an environment that is mended", err)
			}
		})
	}
}

func TestAFailureIsTriedAgainAfterAWhile(t *testing.T) {
	e, c := newInstalledEnv(t)
	e.answer("42")
	e.write("faulty.pth", "")
	if err := c.Check(t.Context()); !errors.Is(err, ErrUnsafe) {
		t.Fatalf("got error %v, want that it is unsafe", err)
	}
	e.answer(CanaryText) // No mark tells of it.
	c.checkedAt = c.checkedAt.Add(-retryInterval)
	if err := c.Check(t.Context()); err != nil {
		t.Errorf("got error %v", err)
	}
}

func TestAnEnvironmentThatChangesWhileItIsInspected(t *testing.T) {
	e, c := newInstalledEnv(t)
	e.file("inspection", `{"ansible_core": "2.21.5", "ansible_runner": "2.4.3", "stamp_paths": ["`+e.dir+`/inspected"]}`)
	e.write("new", "")
	if err := c.Check(t.Context()); !errors.Is(err, errChanging) {
		t.Errorf("got error %v, want %v", err, errChanging)
	}
}

func TestAnInterruptedCheckProvesNothing(t *testing.T) {
	e, c := newInstalledEnv(t)
	e.write("new", "")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the run was canceled")
	cancel(cause)
	if err := c.Check(ctx); !errors.Is(err, cause) {
		t.Errorf("got error %v, want the context's", err)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	e.file(".venv/bin/ansible-runner", "#!/bin/sh\necho > "+e.dir+"/begun; exec sleep 3600\n")
	go func() {
		for range time.Tick(10 * time.Millisecond) {
			if _, err := os.Stat(e.dir + "/begun"); err == nil {
				cancel(cause)
				return
			}
		}
	}()
	if err := c.Check(ctx); !errors.Is(err, cause) {
		t.Errorf("got error %v, want the context's", err)
	}
	e.file(".venv/bin/ansible-runner", "#!/bin/sh\nexit 3\n")
	if err := c.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got error %v, want the next one to try for itself", err)
	}
}

func TestTheSameFaultIsToldInTheSameWords(t *testing.T) {
	e, c := newInstalledEnv(t)
	e.file(".venv/bin/ansible-runner", `#!/bin/sh
echo '{"uuid": "'"$$"'", "event": "verbose", "stdout": "No module named ansible"}'
echo '{"uuid": "'"$$"'", "event": "verbose", "stdout": ""}'
echo "Traceback in $2/project"; exit 1
`)
	first := c.Check(t.Context())
	c.checkedAt = time.Time{}
	second := c.Check(t.Context())
	if first == nil || second == nil || first.Error() != second.Error() {
		t.Errorf("got\n%v and\n%v", first, second)
	}
	if want := "No module named ansible\nTraceback in …/project"; first != nil && !strings.HasSuffix(first.Error(), want) {
		t.Errorf("got %q, want %q at its end", first, want)
	}
}

func BenchmarkHolds(b *testing.B) {
	dir := b.TempDir()
	var paths []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		paths = append(paths, filepath.Join(dir, name))
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			b.Fatal(err)
		}
	}
	c := NewChecker(Env{Bin: dir, Python: "/usr/bin/env", Runner: "/usr/bin/env"}, Info{stampPaths: paths}, nil)
	c.stamp = c.env.stamp(paths)
	for b.Loop() {
		if err := c.Check(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// Another container of the same image has the same environment: nothing has to be tried there.
func TestAProofHoldsForTheSameEnvironmentAlone(t *testing.T) {
	for name, test := range map[string]struct {
		change func(installedEnv)
		proof  func(Proof) Proof
		want   int // further canaries
	}{
		"the same":                      {func(installedEnv) {}, func(p Proof) Proof { return p }, 0},
		"something was installed":       {func(e installedEnv) { e.write("new/x.py", "") }, func(p Proof) Proof { return p }, 1},
		"the interpreter is another":    {func(e installedEnv) { e.touch(e.dir + "/.venv/bin/python") }, func(p Proof) Proof { return p }, 1},
		"nothing was proved":            {func(installedEnv) {}, func(Proof) Proof { return Proof{} }, 1},
		"a proof that names fewer path": {func(installedEnv) {}, func(p Proof) Proof { return Proof{p.Paths[:1], p.Stamp} }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			e, checked := newInstalledEnv(t)
			tried := e.tried()
			test.change(e)
			c := NewChecker(checked.env, Info{}, []byte("{}"))
			c.Accept(test.proof(checked.Proof()))
			if err := c.Check(t.Context()); err != nil || e.tried() != tried+test.want {
				t.Errorf("%v, %d canaries", err, e.tried()-tried)
			}
		})
	}
	e, failed := newInstalledEnv(t)
	e.answer("evaluated")
	e.touch(e.metadata)
	if err := failed.Check(t.Context()); err == nil || failed.Proof().Stamp != "" {
		t.Errorf("%v, and the proof %+v", err, failed.Proof())
	}
}
