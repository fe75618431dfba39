package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// shell is a command whose log another start has used before.
func shell(t *testing.T, script string) Command {
	t.Helper()
	c := Command{Path: "/bin/sh", Args: []string{"-c", script}, Log: filepath.Join(t.TempDir(), "log")}
	if err := os.WriteFile(c.Log, []byte("line of an earlier start\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestExitThatNobodyAskedForQuotesTheLog(t *testing.T) {
	for script, want := range map[string]string{
		"echo cannot bind the port; exit 3": "sh ended: exit status 3; the end of its log LOG:\n  cannot bind the port",
		"exit 0":                            "sh ended: nobody asked it to; it printed nothing (log LOG)",
	} {
		g, c := NewGroup(), shell(t, script)
		if _, err := g.Start(c); err != nil {
			t.Fatal(err)
		}
		if err := <-g.Failed(); err.Error() != strings.Replace(want, "LOG", c.Log, 1) {
			t.Errorf("%s: got %v", script, err)
		}
	}
}

func TestStopEndsChildren(t *testing.T) {
	for why, script := range map[string]string{
		"a child that obeys TERM":   "echo up; exec sleep 600",
		"a child that ignores TERM": "trap '' TERM; echo up; while :; do sleep 600; done",
	} {
		t.Run(why, func(t *testing.T) {
			g, c := NewGroup(), shell(t, script)
			child, err := g.Start(c)
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, func() bool { return strings.HasSuffix(child.Quote(), "\n  up") })
			for range 2 {
				if err := g.Stop(100 * time.Millisecond); err != nil {
					t.Fatal(err)
				}
			}
			if err := syscall.Kill(child.PID(), 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("process %d is still there after Stop: %v", child.PID(), err)
			}
			if len(g.Failed()) > 0 {
				t.Errorf("Stop was reported as a failure: %v", <-g.Failed())
			}
			if _, err := g.Start(c); err == nil {
				t.Error("a stopped group started a child")
			}
		})
	}
}

func TestProgramThatDoesNotExistIsAnErrorOfStart(t *testing.T) {
	_, err := NewGroup().Start(Command{Path: "/does/not/exist", Log: filepath.Join(t.TempDir(), "log")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want one that says the file does not exist", err)
	}
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	scratch.Eventually(t, "what has to come about", holds)
}
