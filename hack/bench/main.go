// Command bench measures the speed and memory that Ensign promises, each figure beside its goal,
// and prints a table. `make bench` calls it.
//
//	bin/bench                          everything, about 35 minutes
//	bin/bench --parts memory,warm      some of it
//	bin/bench --json                   one JSON object instead of the table
//	bin/bench --parts warm --table F   puts what it has measured into a Markdown file
//
// A goal that is missed is marked, and with --strict the exit code is 1: times depend on the
// machine and on its other load. The exit code is also 1 when something could not be measured. It
// runs in the root of the source tree, with bin/manager, bin/controlplane and .venv in place: `make
// bench` makes them.
//
// Part warm runs the same roles for the same CRs by ansible-runner alone (plain.go) and by
// whole managers, whose runs are cold or warm (site.go). It records when each step happens,
// and the processor time and memory that it costs (record.go). Part mysql does so for the
// roles that change a database server, by managers alone. Part traces compares warm runs of
// managers that send traces and that do not (traces.go).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/procfs"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/harness/script"
	"github.com/ensign-operator/ensign/test/harness/trivial"
)

// limit is far beyond the usual time, for machines with much other load.
const limit = 3 * time.Hour

func main() {
	script.Main(play)
	trivial.Main(trivialKind.WithVersion("v1"))
	log.SetLogger(logr.Discard()) // Its clients would ask for one between the lines of progress.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// After the first signal things are taken down in order; a second one kills.
	context.AfterFunc(ctx, stop)
	if err := execute(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, pflag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are the values of the flags: parse has the meaning of each.
type settings struct {
	parts                                                                             []string
	json, strict, full                                                                bool
	table                                                                             string
	rest                                                                              time.Duration
	resources, runs, rounds, repeats, children, releases, scale, scaleRuns, shardRuns int
}

// part is one thing to measure. Its rows belong to the title unless it changes that.
type part struct {
	name, title string
	measure     func(context.Context, *session) error
}

// parts are all there are, in the order in which they are measured.
func parts() []part {
	return []part{
		{"memory", "Memory of the manager (RSS)", measureMemory}, {"warm", "", measureWarm},
		{"proxy", "API proxy", measureProxy}, {"children", "Children", measureChildren},
		{"mysql", "", measureMySQL}, {"traces", "", measureTraces},
		{"releases", "Releases of a chart", measureReleases},
		{"scale", "", measureScale}, {"shards", "Shards", measureShards},
	}
}

func parse(args []string, help io.Writer) (settings, error) {
	var s settings
	var all []string
	for _, p := range parts() {
		all = append(all, p.name)
	}
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	flags.SetOutput(help)
	flags.SortFlags = false
	flags.StringSliceVar(&s.parts, "parts", all, "what to measure")
	flags.BoolVar(&s.json, "json", false, "print one JSON object instead of the table")
	flags.BoolVar(&s.strict, "strict", false, "fail when a goal is missed")
	flags.BoolVar(&s.full, "full", false, "measure 1, 10 and 50 custom resources with 1, 2 and 4 slots in each way, which takes about 40 minutes more; without it some of these")
	flags.StringVar(&s.table, "table", "", "put the warm part's figures into this Markdown `file`, where it has a place for them, as hack/bench/README.md has")
	flags.IntVar(&s.resources, "crs", 1000, "custom resources of the memory part")
	flags.IntVar(&s.runs, "runs", 5, "real runs of the memory part")
	flags.IntVar(&s.rounds, "rounds", 5, "runs of each role in each way: plain ansible-runner, cold, warm; half as many of the longest. Part traces has more, see there")
	flags.IntVar(&s.repeats, "repeats", 5, "measurements of requests through the API proxy, and of drift")
	flags.IntVar(&s.children, "children", 10000, "objects that can be read through the API proxy, and children of a tenth as many custom resources")
	flags.IntVar(&s.releases, "releases", 1000, "releases of a chart that a manager keeps")
	flags.IntVar(&s.scale, "scale", 1000, "custom resources of one manager")
	flags.DurationVar(&s.rest, "rest", time.Minute, "how long they are looked at while nothing happens")
	flags.IntVar(&s.scaleRuns, "scale-runs", 1000, "how many of them are created, and changed, at once where the content is a role; the others are as if they had run")
	flags.IntVar(&s.shardRuns, "shard-runs", 100, "resources that one shard has, and two share")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	for _, name := range s.parts {
		if !slices.Contains(all, name) {
			return s, fmt.Errorf("--parts: %q is none of %s", name, strings.Join(all, ","))
		}
	}
	switch {
	case flags.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case len(s.parts) == 0:
		return s, errors.New("--parts names nothing")
	case s.table != "" && !slices.Contains(s.parts, "warm"):
		return s, errors.New("--table shows what part warm measures, which is not among --parts")
	case min(s.runs, s.rounds, s.repeats, s.children, s.releases, s.scale, s.scaleRuns) < 1 || s.resources < s.runs:
		return s, errors.New("--runs, --rounds, --repeats, --children, --releases, --scale and --scale-runs must be 1 or more, and --crs at least --runs")
	}
	return s, nil
}

// execute measures the parts that are asked for. One that fails does not keep the
// others from being measured and shown.
func execute(ctx context.Context, args []string, out, progress io.Writer) (err error) {
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
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	result := report.Report{}
	var failures []error
	for _, p := range parts() {
		if slices.Contains(settings.parts, p.name) && ctx.Err() == nil {
			rows, err := b.measure(ctx, p)
			result.Rows, failures = append(result.Rows, rows...), append(failures, err)
		}
	}
	result.Machine = b.machine()
	return errors.Join(append(failures, context.Cause(ctx), settings.show(result, out))...)
}

// show prints the report, and makes an error of missed goals where that is asked for.
func (s settings) show(r report.Report, out io.Writer) error {
	var err error
	switch {
	case s.json:
		err = r.JSON(out)
	case len(r.Rows) > 0: // Or nothing could be measured, which the errors say.
		err = r.Table(out)
	}
	if missed, _ := r.Missed(); s.strict && len(missed) > 0 {
		return errors.Join(err, fmt.Errorf("%d goals are missed", len(missed)))
	}
	return err
}

// bench is the common state of the parts.
type bench struct {
	settings settings
	progress io.Writer
	began    time.Time
	about    string // the versions of Ansible that the warm part found
	load     string // of the machine, at the start
	root     string // of the source tree
	dir      string // for files; removed at the end
}

func open(s settings, progress io.Writer) (*bench, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the source tree: %w", err)
	}
	b := &bench{settings: s, progress: progress, began: time.Now(), root: root}
	if _, err := os.Stat(b.project()); err != nil {
		return nil, fmt.Errorf("not in the root of the source tree: %w", err)
	}
	if proc, err := procfs.NewDefaultFS(); err == nil {
		if now, err := proc.LoadAvg(); err == nil {
			b.load = fmt.Sprintf(", load %.1f at the start", now.Load1)
			if now.Load1 > float64(runtime.NumCPU())/2 {
				b.load += ": BUSY, so that times are rough"
			}
		}
	}
	if b.dir, err = os.MkdirTemp("", "ensign-bench-"); err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	return b, nil
}

// project is the operator project that most is measured with.
func (b *bench) project() string { return filepath.Join(b.root, "hack", "bench", "project") }

// machine says where this runs, with which programs, and whether it had the machine to itself.
func (b *bench) machine() string {
	return fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version()) + b.about + b.load
}

// say tells how far it is.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}
