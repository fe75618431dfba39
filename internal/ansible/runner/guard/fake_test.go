package guard

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/proctree"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// The test binary plays the guard, a manager, and processes of runs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		if err := Serve(os.Args[2:]); err != nil {
			panic(err)
		}
		scratch.Leave(0)
	}
	switch os.Getenv("FAKE") {
	case "":
		os.Exit(m.Run())
	case "manager":
		manager()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "polite":
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		ready("polite")
		<-term
		ready("told")
		scratch.Leave(0)
	}
	ready(os.Getenv("FAKE"))
	time.Sleep(10 * time.Minute) // longer than any test waits
}

// ready writes a line with a name and the process' number.
func ready(name string) {
	f, err := os.OpenFile(os.Getenv("READY"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(f, name, os.Getpid())
	if err := f.Close(); err != nil {
		panic(err)
	}
}

// manager starts a guard for RUNS, and a run with RUN as its only process. With
// TERM and KILL it sets a deadline so many milliseconds from then.
func manager() {
	owner := proctree.NewOwner(os.Getenv("RUNS"), rand.Text())
	// Groups are a bonus: marks have to do where there are none.
	if os.Getenv("GROUP") != "" {
		_ = owner.Group()
	}
	g, err := Start(owner, logr.Discard())
	if err != nil {
		panic(err)
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append([]string{"FAKE=" + os.Getenv("RUN"), "READY=" + os.Getenv("READY"), fmt.Sprintf("JOB_ID=%d", os.Getpid())}, owner.Environ()...)
	if _, err := owner.Start(cmd, int64(os.Getpid())); err != nil {
		panic(err)
	}
	for !strings.Contains(read(os.Getenv("READY")), os.Getenv("RUN")) {
		time.Sleep(time.Millisecond)
	}
	if os.Getenv("TERM_IN") != "" {
		g.Extend(in("TERM_IN"), in("KILL_IN"))
	}
}

func in(name string) time.Duration {
	milliseconds, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		panic(err)
	}
	return proctree.Now() + time.Duration(milliseconds)*time.Millisecond
}

func read(path string) string {
	content, _ := os.ReadFile(path) // It may not exist yet.
	return string(content)
}
