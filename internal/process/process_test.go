package process

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/process/proctree"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// runNonce marks the processes of these tests.
var runNonce = int64(os.Getpid())

// startShell starts a shell with the script, which reads lines that are written to orders.
func startShell(t *testing.T, recordsOnStdout bool, script string) (p *Process, orders io.WriteCloser) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "JOB_ID=" + strconv.FormatInt(runNonce, 10)}
	orders, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipes, err := Connect(cmd, recordsOnStdout)
	if err != nil {
		t.Fatal(err)
	}
	p, err = pipes.Start(func() (*proctree.Tree, error) { return (&proctree.Reaper{}).Start(cmd, runNonce) }, func(records io.Reader) error {
		_, err := io.Copy(io.Discard, records)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, orders
}

// reads counts what has come from the program.
func (p *Process) reads() (count int64) {
	for _, s := range p.streams() {
		count += s.reads.Load()
	}
	return count
}

// An idle timeout must hear all that a program can say.
func TestAllThatAProgramSaysIsHeard(t *testing.T) {
	for name, test := range map[string]struct {
		recordsOnStdout bool
		say             string
	}{
		"records at the standard output": {true, "echo"},
		"text at the standard error":     {true, "echo >&2"},
		"records at their own place":     {false, "echo >&3"},
		"text at the standard output":    {false, "echo"},
		"text at both":                   {false, "echo >&2"},
	} {
		t.Run(name, func(t *testing.T) {
			p, orders := startShell(t, test.recordsOnStdout, "while read order; do "+test.say+"; done")
			for range 3 {
				before := p.reads()
				if _, err := io.WriteString(orders, "\n"); err != nil {
					t.Fatal(err)
				}
				scratch.Eventually(t, "what was said", func() bool { return p.reads() > before })
			}
			if err := orders.Close(); err != nil {
				t.Fatal(err)
			}
			if code, cause, err := p.Wait(t.Context(), time.Hour); code != 0 || cause != nil || err != nil {
				t.Errorf("got %d, %v, %v", code, cause, err)
			}
		})
	}
}

// The process that holds the pipes is found and ended; then there is nothing to wait for.
func TestTheEndOfAPipeIsNotWaitedFor(t *testing.T) {
	p, _ := startShell(t, false, "sleep 600 & exit 0")
	if code, cause, err := p.Wait(t.Context(), time.Hour); code != 0 || cause != nil || err != nil {
		t.Errorf("got %d, %v, %v", code, cause, err)
	}
	for _, s := range p.streams() {
		if s.drainTime >= PipeTimeout {
			t.Errorf("the end of a pipe was waited for: %s", s.drainTime)
		}
	}
}
