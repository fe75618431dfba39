package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/proctree"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/ansible/runner/guard"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// The test binary plays the guard, as the manager does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == guard.Command {
		if err := guard.Serve(os.Args[2:]); err != nil {
			panic(err)
		}
		scratch.Leave(0)
	}
	os.Exit(m.Run())
}

func guards(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		cmdline, _ := os.ReadFile(path) // It may have ended.
		if strings.Contains(string(cmdline), fmt.Sprintf("\x00%s\x00%s\x00", guard.Command, dir)) {
			found = append(found, path)
		}
	}
	return found
}

func TestOwnershipLastsFromOneEndToTheOther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	take := func() (ownership, error) {
		root, owner, err := runner.TakeOver(dir, logr.Discard())
		if err != nil {
			return ownership{}, err
		}
		return own(&runner.Runner{Root: root, Owner: owner}, config.Options{Logger: logr.Discard()})
	}
	owned, err := take()
	if err != nil {
		t.Fatal(err)
	}
	if got := guards(t, dir); len(got) != 1 {
		t.Errorf("got guards %q, want one", got)
	}
	if _, err := take(); err == nil || len(guards(t, dir)) != 1 {
		t.Errorf("a second manager got the directory (error %v) or a guard", err)
	}
	if err := owned.runner.RunContext().Err(); err != nil {
		t.Errorf("without a lease runs have no permit: %v", err)
	}
	owned.extend(proctree.Now(), proctree.Now()+time.Hour)
	if err := context.Cause(owned.runner.RunContext()); !errors.Is(err, guard.ErrDeadline) {
		t.Errorf("got %v when the lease has run out", err)
	}
	if err := owned.end(); err != nil {
		t.Error(err)
	}
	if got := guards(t, dir); len(got) > 0 {
		t.Errorf("guards are left: %q", got)
	}
	if owned, err = take(); err != nil {
		t.Fatalf("the directory can't be taken again: %v", err)
	}
	if err := owned.end(); err != nil {
		t.Error(err)
	}
}

func TestWithoutAGuardALeaseIsNobodysBusiness(*testing.T) {
	ownership{}.extend(1, 2) // and does not panic
}
