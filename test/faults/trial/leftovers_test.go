package trial

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// sleeper starts a process for the time of the test, and returns its number.
func sleeper(t *testing.T, entry string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "3600")
	cmd.Env = []string{entry}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // The context has killed it.
	return cmd.Process.Pid
}

func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	marked := sleeper(t, "X="+dir)
	sleeper(t, "X="+filepath.Join(dir, "r", "uid"))
	sleeper(t, "X="+dir+"1") // The name of another begins the same way.
	scratch.Eventually(t, "both are found", func() bool { return len(processes(dir, 0)) == 2 })
	if got := told(processes(dir, marked)); len(got) != 1 || !alive(marked) {
		t.Errorf("got %v, want the manager to be left out", got)
	}
	kill(dir)
	scratch.Eventually(t, "both are zombies of this process", func() bool { return len(zombies(os.Getpid())) == 2 })
	if got := told(processes(dir, 0)); len(got) != 0 || alive(marked) {
		t.Errorf("got %v after the kill", got)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{"here/run/x": "", "gone/artifacts/a": "the secret is xyz", ".tmp/x": ""})
	for _, name := range []string{".lock", "kept"} {
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
	}
	open := descriptors(os.Getpid(), dir)
	if err := errors.Join(os.Remove(filepath.Join(dir, ".lock")), os.Remove(filepath.Join(dir, "kept"))); err != nil {
		t.Fatal(err)
	}
	found := directories(dir, "here")
	slices.Sort(found)
	for what, test := range map[string]struct{ want, got []string }{
		"directories": {[]string{"the directory of a resource that is gone: gone", "the directory of a run: here"}, found},
		"descriptors": {[]string{"descriptor of " + filepath.Join(dir, "kept")}, open},
		"the token":   {[]string{"a token of a run is in " + filepath.Join(dir, "gone", "artifacts", "a")}, holding(dir, "xyz")},
		"no token":    {nil, holding(dir, "zyx")},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}
