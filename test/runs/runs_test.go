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
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/cores"
	"github.com/ensign-operator/ensign/test/harness/scratch"
	"github.com/ensign-operator/ensign/test/runs/bench"
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

// tidy is a bench that shows after every run that nothing is left of it but artifacts without
// secrets.
type tidy struct {
	*bench.Bench
	t      *testing.T
	events []jobevent.Event
}

func newBench(t *testing.T, files map[string]string) *tidy {
	t.Helper()
	b := &tidy{t: t, Bench: inCommon(t).Bench(t, files)}
	t.Cleanup(func() { empty(t) })
	heat(t, b.Bench)
	return b
}

func (b *tidy) role(name string) runner.Spec {
	return runner.Spec{UID: uid, ID: "run-1", Role: name, RolesPath: b.In("roles"), ExtraVars: []byte("\t\n{\"size\": 3}")}
}

func (b *tidy) playbook(name string) runner.Spec {
	return runner.Spec{UID: uid, ID: "run-1", Playbook: b.In(name), ExtraVars: []byte("\t\n{\"size\": 3}")}
}

// run runs the spec and checks what holds after every run.
func (b *tidy) run(ctx context.Context, spec runner.Spec) (result runner.Result) {
	b.t.Helper()
	result, b.events = b.Do(ctx, spec)
	b.nothingLeft(spec.UID)
	if left := processes(b.t, b.Runs, b.Content); len(left) > 0 {
		b.t.Errorf("processes are left: %q", left)
	}
	return result
}

func (b *tidy) nothingLeft(uid string) {
	b.t.Helper()
	if temp, err := os.ReadDir(filepath.Join(b.Runs, ".tmp")); err != nil || len(temp) > 0 {
		b.t.Errorf("temporary files are left: %v (error %v)", temp, err)
	}
	err := filepath.WalkDir(filepath.Join(b.Runs, uid), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(b.Runs, path)
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
func (b *tidy) closed(path string, d fs.DirEntry) error {
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
func (b *tidy) artifact(uid, name string) string {
	b.t.Helper()
	paths, err := filepath.Glob(filepath.Join(b.Runs, uid, "artifacts", "*", name))
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
func (b *tidy) messages() []string {
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

func wantOutcome(t *testing.T, got runner.Result, verdict content.Verdict, reason content.Reason) {
	t.Helper()
	if got.Outcome.Verdict != verdict || got.Outcome.Reason != reason {
		t.Errorf("got outcome %+v, want %s, %s", got.Outcome, verdict, reason)
	}
	if got.Ended.Before(got.Started) || time.Since(got.Ended) > scratch.WaitTimeout {
		t.Errorf("got a run from %v to %v", got.Started, got.Ended)
	}
}
