package runs

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/cores"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// secret is the value of a variable of the manager's environment. No file that a
// run leaves behind may hold it.
const secret = "canary-e7c1a9-of-the-environment"

// environment is the one that `make python` made.
func environment(t *testing.T) pyenv.Env {
	t.Helper()
	env, _ := cores.Find(t, ".venv", managerEnv()...).WithUTF8Locale(t.Context())
	return env
}

// managerEnv has no locale, as most containers have none.
func managerEnv() []string {
	return []string{"PATH=/usr/bin:/bin", "HOME=" + os.Getenv("HOME"), "SECRET_OF_THE_MANAGER=" + secret}
}

// bench is a runner with a content directory of its own.
type bench struct {
	t *testing.T
	*runner.Runner
	content string // for roles and playbooks
	runs    string // the run directory
	events  []jobevent.Event
}

func newBench(t *testing.T, files map[string]string) *bench {
	t.Helper()
	env := environment(t)
	b := &bench{t: t, content: t.TempDir(), Runner: &runner.Runner{Binary: env.Runner, Python: env.Python, Env: env.Environ()}}
	scratch.Write(t, b.content, files)
	c := inCommon(t, env)
	t.Cleanup(func() { c.empty(t) })
	b.Root, b.runs = c.root, c.root.Path()
	c.heat(t, b.Runner)
	return b
}

func (b *bench) role(name string) runner.Spec {
	return runner.Spec{UID: uid, ID: "run-1", Role: name, RolesPath: filepath.Join(b.content, "roles"), ExtraVars: []byte("\t\n{\"size\": 3}")}
}

func (b *bench) playbook(name string) runner.Spec {
	return runner.Spec{UID: uid, ID: "run-1", Playbook: filepath.Join(b.content, name), ExtraVars: []byte("\t\n{\"size\": 3}")}
}

// run runs the spec and checks what holds after every run: nothing is left of
// it but artifacts without secrets.
func (b *bench) run(ctx context.Context, spec runner.Spec) runner.Result {
	b.t.Helper()
	b.events = nil
	result := b.Run(ctx, spec, func(e jobevent.Event) { b.events = append(b.events, e) })
	b.nothingLeft(spec.UID)
	if left := processes(b.t, b.runs, b.content); len(left) > 0 {
		b.t.Errorf("processes are left: %q", left)
	}
	return result
}

func (b *bench) nothingLeft(uid string) {
	b.t.Helper()
	if temp, err := os.ReadDir(filepath.Join(b.runs, ".tmp")); err != nil || len(temp) > 0 {
		b.t.Errorf("temporary files are left: %v (error %v)", temp, err)
	}
	err := filepath.WalkDir(filepath.Join(b.runs, uid), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(b.runs, path)
		if err != nil {
			return err
		}
		parts := strings.Split(rel, string(filepath.Separator))
		if len(parts) > 1 && parts[1] != "artifacts" {
			b.t.Errorf("%q is left", rel)
		}
		return b.closed(path, d)
	})
	if err != nil {
		b.t.Error(err)
	}
}

// closed checks that nobody else can read a path and that it holds no secret.
func (b *bench) closed(path string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		b.t.Errorf("%q has mode %v", path, info.Mode())
	}
	if d.IsDir() {
		return nil
	}
	content, err := os.ReadFile(path)
	if bytes.Contains(content, []byte(secret)) {
		b.t.Errorf("%q holds a value of the manager's environment", path)
	}
	return err
}

// artifact reads a file of the only artifact.
func (b *bench) artifact(uid, name string) string {
	b.t.Helper()
	paths, err := filepath.Glob(filepath.Join(b.runs, uid, "artifacts", "*", name))
	if err != nil || len(paths) != 1 {
		b.t.Fatalf("got artifacts %q (error %v), want one", paths, err)
	}
	content, err := os.ReadFile(paths[0])
	if err != nil {
		b.t.Fatal(err)
	}
	return string(content)
}

// messages lists the msg of each task that succeeded and printed one.
func (b *bench) messages() []string {
	var out []string
	for _, e := range b.events {
		if msg, ok := e.Result["msg"]; ok && e.Kind == jobevent.HostOK {
			out = append(out, fmt.Sprint(msg))
		}
	}
	return out
}

// processes lists the command lines of processes that name one of the directories in
// their environment. The servers for warm runs, and this process, are no run's.
func processes(t *testing.T, dirs ...string) (found []string) {
	t.Helper()
	for _, dir := range dirs {
		all, err := harness.ProcessesOf(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			if !p.Server && p.PID != os.Getpid() {
				found = append(found, p.CommandLine)
			}
		}
	}
	return found
}

func wantOutcome(t *testing.T, got runner.Result, verdict jobevent.Verdict, reason jobevent.Reason) {
	t.Helper()
	if got.Outcome.Verdict != verdict || got.Outcome.Reason != reason {
		t.Errorf("got outcome %+v, want %s, %s", got.Outcome, verdict, reason)
	}
	if got.Ended.Before(got.Started) || time.Since(got.Ended) > time.Minute {
		t.Errorf("got a run from %v to %v", got.Started, got.Ended)
	}
}
