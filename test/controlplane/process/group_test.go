package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// role makes the test binary play a child or an owner of children.
const role = "ENSIGN_PROCESS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "owner":
		own()
	case "fails":
		fmt.Println("cannot bind the port")
		os.Exit(3)
	case "ignores TERM":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("up")
		time.Sleep(time.Hour) // An empty select would count as a deadlock.
	}
}

// own starts a child, prints its id, and stays.
func own() {
	dir, err := os.MkdirTemp("", "process-test-")
	if err != nil {
		panic(err)
	}
	child, err := NewGroup().Start(Command{Path: "sleep", Args: []string{"600"}, Log: filepath.Join(dir, "log")})
	if err != nil {
		panic(err)
	}
	fmt.Println(dir, child.PID())
	time.Sleep(time.Hour)
}

// playing returns the command of this binary in a role.
func playing(t *testing.T, name string) Command {
	t.Helper()
	t.Setenv(role, name)
	return Command{Path: os.Args[0], Log: filepath.Join(t.TempDir(), "log")}
}

func TestExitThatNobodyAskedForQuotesTheLog(t *testing.T) {
	g := NewGroup()
	defer func() { _ = g.Stop(time.Second) }()
	command := playing(t, "fails")
	if err := os.WriteFile(command.Log, []byte("line of an earlier start\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	child, err := g.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err = <-g.Failed():
	case <-time.After(10 * time.Second):
		t.Fatal("the exit was not reported")
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("want the exit status 3 in %v", err)
	}
	for _, want := range []string{child.Name(), "cannot bind the port", command.Log} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in the error:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "earlier start") {
		t.Errorf("the error quotes another start's output:\n%v", err)
	}
}

func TestStopEndsChildren(t *testing.T) {
	for why, command := range map[string]func(*testing.T) Command{
		"a child that obeys TERM": func(t *testing.T) Command {
			return Command{Path: "sleep", Args: []string{"600"}, Log: filepath.Join(t.TempDir(), "log")}
		},
		"a child that ignores TERM": func(t *testing.T) Command { return playing(t, "ignores TERM") },
	} {
		t.Run(why, func(t *testing.T) {
			g := NewGroup()
			c := command(t)
			child, err := g.Start(c)
			if err != nil {
				t.Fatal(err)
			}
			if c.Path == os.Args[0] { // Only once it says so does it ignore TERM.
				eventually(t, func() bool { return strings.Contains(child.Quote(), "up") })
			}
			if err := g.Stop(100 * time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if alive(child.PID()) {
				t.Errorf("process %d is still there after Stop", child.PID())
			}
			select {
			case err := <-g.Failed():
				t.Errorf("Stop was reported as a failure: %v", err)
			default:
			}
			if err := g.Stop(time.Second); err != nil {
				t.Errorf("a second Stop failed: %v", err)
			}
			if _, err := g.Start(c); err == nil {
				t.Error("a stopped group started a child")
			}
		})
	}
}

func TestProgramThatDoesNotExistIsAnErrorOfStart(t *testing.T) {
	g := NewGroup()
	defer func() { _ = g.Stop(time.Second) }()
	_, err := g.Start(Command{Path: "/does/not/exist", Log: filepath.Join(t.TempDir(), "log")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want one that says the file does not exist", err)
	}
}

func TestChildrenDieWithAKilledOwner(t *testing.T) {
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), role+"=owner")
	stdout, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	dir, number, _ := strings.Cut(strings.TrimSpace(line), " ")
	defer func() { _ = os.RemoveAll(dir) }()
	child, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	if !alive(child) {
		t.Fatal("the owner's child does not run")
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // It reports the kill.
	eventually(t, func() bool { return !alive(child) })
}

// alive is false for zombies too: an orphan may wait for init to reap it.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatal("it did not come true within 10 s")
}
