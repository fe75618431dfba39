package leftovers

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sleeper starts a process and ends it with the test.
func sleeper(t *testing.T, dir string, env []string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.Dir, cmd.Env = dir, env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// soon waits for what the kernel shows a moment later.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 1000 {
		if holds() {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Errorf("waited in vain: %s", what)
}

func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	marked := sleeper(t, "/", []string{"X=" + dir})
	below := sleeper(t, "/", []string{"X=" + filepath.Join(dir, "r", "uid")})
	sleeper(t, "/", []string{"X=" + dir + "1"}) // The name of another begins the same way.
	soon(t, "both are found", func() bool { return len(Processes(dir)) == 2 })
	if got := Processes(dir, marked.Process.Pid, below.Process.Pid); len(got) != 0 {
		t.Errorf("got %v, want nothing but what is left out", got)
	}
	if !Alive(marked.Process.Pid) {
		t.Error("a live process is not alive")
	}
	Kill(dir)
	soon(t, "both are zombies of this process", func() bool { return len(Zombies(os.Getpid())) == 2 })
	if got := Processes(dir); len(got) != 0 || Alive(marked.Process.Pid) {
		t.Errorf("got %v after the kill", got)
	}
	if err := marked.Wait(); err == nil {
		t.Error("the process was not killed")
	}
	if got := Zombies(os.Getpid()); len(got) != 1 {
		t.Errorf("got %v, want one zombie", got)
	}
}

func TestDescriptors(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".lock", "kept"} {
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
	}
	want := []string{"descriptor of " + filepath.Join(dir, "kept")}
	if diff := cmp.Diff(want, Descriptors(os.Getpid(), dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "here", "run"), 0o700), os.MkdirAll(filepath.Join(dir, "gone", "artifacts"), 0o700), os.Mkdir(filepath.Join(dir, ".tmp"), 0o700),
		os.WriteFile(filepath.Join(dir, "gone", "artifacts", "a"), []byte("the secret is xyz"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	got := Directories(dir, "here")
	slices.Sort(got)
	if diff := cmp.Diff([]string{"the directory of a resource that is gone: gone", "the directory of a run: here"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Holding(dir, "xyz"); len(got) != 1 || !strings.HasSuffix(got[0], "gone/artifacts/a") {
		t.Errorf("got %v", got)
	}
	if got := Holding(dir, "zyx"); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
