// Command bench measures what Ensign promises of its speed and memory, each
// figure beside what it is held against, and prints a table. `make bench` calls
// it.
//
//	bin/bench                          everything, about 12 minutes
//	bin/bench --parts memory,warm      some of it
//	bin/bench --json                   one JSON object instead of the table
//	bin/bench --parts warm --plot F    draws what it has measured, as SVG; --table puts it into Markdown
//
// A goal that is missed is marked, and with --strict the exit code is 1: times depend
// on the machine and on what else it does. It always is when something could not be
// measured. It runs in the root of the source tree, with bin/manager,
// bin/controlplane and .venv in place: `make bench` makes them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/hack/bench/sides"
	"github.com/ensign-operator/ensign/test/harness/idle"
)

// limit is far beyond what it takes, for machines that do much else.
const limit = 3 * time.Hour

func main() {
	if played, err := idle.Play(os.Args, os.Stdout); played {
		exit(err)
		return
	}
	log.SetLogger(logr.Discard()) // Its clients would ask for one between the lines of progress.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// After the first signal things are taken down in order; a second one kills.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	exit(err)
}

// exit ends the program where it has failed.
func exit(err error) {
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are what the flags ask for.
type settings struct {
	parts     []string
	json      bool
	strict    bool   // A missed goal is an error.
	full      bool   // The warm part leaves nothing out.
	plot      string // a file for the warm part's charts
	table     string // a file with a place for its figures
	resources int    // custom resources in the memory part
	runs      int    // real runs there
	rounds    int    // runs of each way and role
	repeats   int    // of each measurement of reads
	children  int    // objects in the parts about children and the API proxy
}

// part is one thing to measure.
type part struct {
	name    string
	measure func(context.Context, *bench) ([]report.Row, error)
}

// parts are all there are, in the order in which they are measured.
func parts() []part {
	return []part{{"memory", measureMemory}, {"warm", measureWarm}, {"proxy", measureReads}, {"children", measureChildren}}
}

func parse(args []string, help io.Writer) (settings, error) {
	var s settings
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(help)
	chosen := flags.String("parts", strings.Join(names, ","), "what to measure, of "+strings.Join(names, ", "))
	flags.BoolVar(&s.json, "json", false, "print one JSON object instead of the table")
	flags.BoolVar(&s.strict, "strict", false, "fail when a goal is missed")
	flags.BoolVar(&s.full, "full", false, "measure 1, 10 and 50 custom resources with 1, 2 and 4 slots in each way, which takes about 40 minutes more; without it some of these")
	flags.StringVar(&s.plot, "plot", "", "draw the warm part's figures into this `file`, as SVG")
	flags.StringVar(&s.table, "table", "", "put the warm part's figures into this Markdown `file`, where it has a place for them, as docs/performance.md has")
	flags.IntVar(&s.resources, "crs", 1000, "custom resources of the memory part")
	flags.IntVar(&s.runs, "runs", 5, "real runs of the memory part")
	flags.IntVar(&s.rounds, "rounds", 5, "runs of each role in each way: plain ansible-runner, cold, warm; half as many of the longest")
	flags.IntVar(&s.repeats, "repeats", 5, "measurements of requests through the API proxy, and of drift")
	flags.IntVar(&s.children, "children", 10000, "objects that can be read through the API proxy, and children of a tenth as many custom resources")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	s.parts = strings.Split(*chosen, ",")
	return s, s.check(names)
}

func (s settings) check(names []string) error {
	known := "," + strings.Join(names, ",") + ","
	for _, name := range s.parts {
		if name == "" || !strings.Contains(known, ","+name+",") {
			return fmt.Errorf("--parts: %q is none of %s", name, strings.Join(names, ", "))
		}
	}
	if s.plot+s.table != "" && !s.wants("warm") {
		return errors.New("--plot and --table show what part warm measures, which is not among --parts")
	}
	if s.runs < 1 || s.resources < s.runs || s.rounds < 1 || s.repeats < 1 || s.children < 1 {
		return errors.New("--runs, --rounds, --repeats and --children must be 1 or more, and --crs at least --runs")
	}
	return nil
}

func (s settings) wants(part string) bool {
	return strings.Contains(","+strings.Join(s.parts, ",")+",", ","+part+",")
}

// run measures the parts that are asked for. One that fails does not keep the
// others from being measured and shown.
func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	if len(args) == 3 && args[0] == serveProxy {
		return serve(ctx, args[1], args[2])
	}
	settings, err := parse(args, progress)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	defer cancel()
	b, err := open(settings, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }() //nolint:gosec // It was made here, in the TMPDIR of who calls this.
	result := report.Report{}
	var failures []error
	for _, p := range parts() {
		if !settings.wants(p.name) || ctx.Err() != nil {
			continue
		}
		rows, err := p.measure(ctx, b)
		result.Rows = append(result.Rows, rows...)
		if err != nil {
			failures = append(failures, fmt.Errorf("measure %s: %w", p.name, err))
		}
	}
	result.Machine, result.Charts = b.machine(), b.warm.Charts
	return errors.Join(append(failures, context.Cause(ctx), settings.show(result, out), settings.draw(result.Machine, b.warm), settings.judge(result))...)
}

// judge makes an error of missed goals, where that is asked for.
func (s settings) judge(r report.Report) error {
	if missed := r.Missed(); s.strict && len(missed) > 0 {
		return fmt.Errorf("%d goals are missed", len(missed))
	}
	return nil
}

func (s settings) show(r report.Report, out io.Writer) error {
	switch {
	case s.json:
		return r.JSON(out)
	case len(r.Rows) == 0:
		return nil // Nothing could be measured, which the errors say.
	default:
		return r.Table(out)
	}
}

// bench is what the parts have in common.
type bench struct {
	warm     sides.Figures
	load     string // of the machine, at the start
	settings settings
	progress io.Writer
	began    time.Time
	root     string // of the source tree
	dir      string // for files; removed at the end
}

func open(s settings, progress io.Writer) (*bench, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the source tree: %w", err)
	}
	b := &bench{settings: s, progress: progress, began: time.Now(), root: root, load: load()}
	if _, err := os.Stat(b.project()); err != nil {
		return nil, fmt.Errorf("not in the root of the source tree: %w", err)
	}
	if b.dir, err = os.MkdirTemp("", "ensign-bench-"); err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	return b, nil
}

// project is the operator project that is measured with.
func (b *bench) project() string { return filepath.Join(b.root, "hack", "bench", "project") }

// say tells how far it is.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}
