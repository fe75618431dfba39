package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/internal/jobevent"
	"github.com/ensign-operator/ensign/internal/pyenv"
	"github.com/ensign-operator/ensign/internal/rundir"
	"github.com/ensign-operator/ensign/internal/runner"
)

const (
	coldPart = "A cold run"
	// mostOverhead is the goal of our runs, as a multiple of ansible-runner's.
	mostOverhead = 1.05
	role         = "bench"
	verbosity    = 2 // The manager's default.
)

// extraVars is what both kinds of run give the role.
const extraVars = "\t\n" + `{"size": 3, "bench_settings": {"colour": {"__ansible_unsafe": "blue"}}}`

// coldRuns are both ways to run the role.
type coldRuns struct {
	runner *runner.Runner
	env    pyenv.Env
	roles  string
	dir    string
	count  int // of the runs so far, for their names
}

// measureColdRuns lets our runner and ansible-runner take turns.
func measureColdRuns(ctx context.Context, b *bench) (rows []report.Row, err error) {
	c, err := newColdRuns(b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.runner.Root.Close()) }()
	var ours, plain costs
	for i := range b.settings.pairs + 1 {
		b.say("cold runs: pair %d of %d, ours and plain ansible-runner; about 5 s", i, b.settings.pairs)
		a, err := measured(ctx, c.ours)
		if err != nil {
			return nil, err
		}
		p, err := measured(ctx, c.plain)
		if err != nil {
			return nil, err
		}
		if i > 0 { // The first pair fills the caches of the file system and of Python.
			ours.add(a)
			plain.add(p)
		}
	}
	note := fmt.Sprintf("of the medians of %d runs each, in turns, of the role in hack/bench/project with %s; low … high is of neighbours", b.settings.pairs, c.env.Bin)
	rows = append(compare("wall time", "s", ours.wall, plain.wall), compare("CPU with children", "s", ours.cpu, plain.cpu)...)
	rows[2].Note, rows[5].Note = note, note
	return rows, nil
}

// compare gives both medians and their ratio.
func compare(name, unit string, ours, plain report.Samples) []report.Row {
	rows := []report.Row{ours.Row(unit), plain.Row(unit), report.Ratio(ours, plain)}
	for i, suffix := range []string{"our runner", "plain ansible-runner run", "ratio"} {
		rows[i].Part, rows[i].Name = coldPart, name+", "+suffix
	}
	rows[2].Goal = report.AtMost(mostOverhead)
	return rows
}

func newColdRuns(b *bench) (*coldRuns, error) {
	env, err := pyenv.Find(pyenv.Search{Dir: b.root, Environ: os.Environ()})
	if err != nil {
		return nil, err
	}
	root, err := rundir.Open(filepath.Join(b.dir, "runs"))
	if err != nil {
		return nil, err
	}
	return &coldRuns{
		runner: &runner.Runner{Root: root, Binary: env.Runner, Python: env.Python, Env: os.Environ()},
		env:    env,
		roles:  filepath.Join(b.project(), "roles"),
		dir:    b.dir,
	}, nil
}

// ours runs the role as the manager does.
func (c *coldRuns) ours(ctx context.Context) error {
	c.count++
	result := c.runner.Run(ctx, runner.Spec{
		UID: "bench", ID: "run-" + strconv.Itoa(c.count),
		Role: role, RolesPath: c.roles, ExtraVars: []byte(extraVars),
		Verbosity: verbosity, MaxArtifacts: 1,
	}, func(jobevent.Event) {})
	if result.Outcome.Verdict != jobevent.Succeeded {
		return fmt.Errorf("our run: %s: %s", result.Outcome.Reason, result.Outcome.Message)
	}
	return nil
}

// plain runs the role as one would by hand, in a fresh directory with the same
// variables, interpreter and verbosity.
func (c *coldRuns) plain(ctx context.Context) error {
	c.count++
	private := filepath.Join(c.dir, "plain-"+strconv.Itoa(c.count))
	if err := c.prepare(private); err != nil {
		return err
	}
	output, err := os.Create(filepath.Join(private, "output"))
	if err != nil {
		return fmt.Errorf("plain run: %w", err)
	}
	defer output.Close()
	cmd := exec.CommandContext(ctx, c.env.Runner, "run", private,
		"--role", role, "--roles-path", c.roles, "--hosts", "localhost", "-"+strings.Repeat("v", verbosity))
	cmd.Dir = private
	cmd.Env = append(os.Environ(), "PATH="+c.env.Bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		text, readErr := os.ReadFile(output.Name())
		return errors.Join(fmt.Errorf("plain run: %w; it printed:\n%s", err, text), readErr)
	}
	return nil
}

// prepare makes ansible-runner's directory.
func (c *coldRuns) prepare(private string) error {
	for name, content := range map[string]string{
		"env/extravars":   extraVars,
		"inventory/hosts": "localhost ansible_connection=local ansible_python_interpreter=" + c.env.Python + "\n",
	} {
		path := filepath.Join(private, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("prepare a plain run: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("prepare a plain run: %w", err)
		}
	}
	return nil
}

// cost is what one run took, in seconds.
type cost struct{ wall, cpu float64 }

// costs are those of several runs.
type costs struct{ wall, cpu report.Samples }

func (c *costs) add(one cost) {
	c.wall = append(c.wall, one.wall)
	c.cpu = append(c.cpu, one.cpu)
}

// measured gives the wall time of a function, and the CPU time of this process
// and all processes that it has waited for, and they in turn.
func measured(ctx context.Context, f func(context.Context) error) (cost, error) {
	before, err := cpuTime()
	if err != nil {
		return cost{}, err
	}
	began := time.Now()
	if err := f(ctx); err != nil {
		return cost{}, err
	}
	wall := time.Since(began)
	after, err := cpuTime()
	return cost{wall: wall.Seconds(), cpu: (after - before).Seconds()}, err
}

func cpuTime() (time.Duration, error) {
	var sum time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if err := unix.Getrusage(who, &usage); err != nil {
			return 0, fmt.Errorf("read the CPU time: %w", err)
		}
		sum += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return sum, nil
}
