package stub

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// The test binary plays ansible-runner and ansible-playbook.
func TestMain(m *testing.M) {
	if os.Getenv(DirVariable) != "" {
		scratch.Leave(Main())
	}
	os.Exit(m.Run())
}

// command is the one by which a manager starts a run.
func command(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	const variables = `{"_g_io_widget": {"metadata": {"uid": "u", "generation": 3}}}`
	scratch.Write(t, dir, map[string]string{"run/env/extravars": variables, "run/kubeconfig": "k"})
	bin := filepath.Join(t.TempDir(), "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ansible-runner", "ansible-playbook"} {
		if err := os.Symlink(os.Args[0], filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(bin, "ansible-runner"), "run", filepath.Join(dir, "run"), "--json", "--ident=r1", "-p", "/p/play.yml")
	cmd.Env = []string{"PATH=" + bin, "JOB_ID=42", "KUBECONFIG=" + filepath.Join(dir, "run", "kubeconfig"), DirVariable + "=" + dir}
	return cmd
}

func TestARunEndsWithItsPlaybookOnTermAndWithoutItOnKill(t *testing.T) {
	for signal, outlives := range map[syscall.Signal]bool{syscall.SIGTERM: false, syscall.SIGKILL: true} {
		t.Run(signal.String(), func(t *testing.T) {
			dir := t.TempDir()
			held, release := make(chan Record, 1), make(chan struct{})
			stage, err := OpenStage(dir, func(r Record) {
				if r.What == string(plan.MidTask) {
					held <- r
					<-release
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = stage.Close() }()
			defer close(release) // What outlives ends, because it has nobody to tell.
			cmd := command(t, dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			playbook := (<-held).PID
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("the run ended well")
			}
			if alive := syscall.Kill(playbook, 0) == nil; alive != outlives {
				t.Errorf("ansible-playbook is alive: %v, want %v", alive, outlives)
			}
		})
	}
}

func TestASecondLiveRunIsToldOf(t *testing.T) {
	dir := t.TempDir()
	for i, want := range []bool{true, false, true} {
		if got, err := enter(dir, []string{"u", "u", "v"}[i]); got != want || err != nil {
			t.Errorf("run %d is alone: %v (error %v), want %v", i, got, err, want)
		}
	}
}

// A reader may come between the parts of a line that reach the file one after the other.
func TestALineOfTheJournalThatIsBeingWrittenIsNotThereYet(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{journalName: `{"what": "started"}` + "\n" + `{"what": "en`})
	if got, err := ReadJournal(dir); err != nil || len(got) != 1 {
		t.Errorf("got %v (error %v)", got, err)
	}
}
