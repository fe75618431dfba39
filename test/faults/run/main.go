// Command faults performs fault plans against a manager and prints what came out.
// `make faults` builds what it needs and runs it.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/faults/campaign"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/trial"
)

func main() {
	log.SetLogger(logr.Discard()) // Of the clients, that have nothing to tell.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	plans    string
	parallel int
	seed     uint64
	fast     bool
	list     bool
	manager  string
	mutants  bool
	charts   bool
	shards   bool
	jobs     bool
	runs     bool
	only     string
	atOnce   int
	logs     string // a directory
	root     string // of the repository
	out      io.Writer
}

// parse reads the flags. The program is called in the root of the repository.
func parse(args []string, out io.Writer) (settings, error) {
	root, err := os.Getwd()
	s := settings{root: root, out: out}
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&s.plans, "plans", "", "regular `expression` that the names of the plans match")
	flags.IntVar(&s.parallel, "parallel", 8, "plans at a time")
	flags.Uint64Var(&s.seed, "seed", 0, "order of the plans; 0 takes the time")
	flags.BoolVar(&s.fast, "fast", false, "only the subset that make test performs")
	flags.BoolVar(&s.list, "list", false, "print the names of the plans and perform none")
	flags.StringVar(&s.manager, "manager", filepath.Join("bin", "manager"), "the `program` under test")
	flags.BoolVar(&s.mutants, "mutants", false, "build each mutant of the manager and expect the plans to notice it")
	flags.BoolVar(&s.charts, "chart-mutants", false, "build each mutant of what the manager does with charts and expect the specs of test/charts to notice it")
	flags.BoolVar(&s.shards, "shard-mutants", false, "build each mutant of what keeps shards apart and expect the specs of test/leases to notice it")
	flags.BoolVar(&s.jobs, "job-mutants", false, "build each mutant of what the manager does with Jobs and expect the specs of test/jobs to notice it")
	flags.BoolVar(&s.runs, "run-mutants", false, "make each mutant of runs and expect the tests of test/runs to notice it")
	flags.StringVar(&s.only, "only", "", "regular `expression` that the names of the mutants match")
	flags.IntVar(&s.atOnce, "at-once", 0, "mutants at a time; 0 takes what suits their kind")
	flags.StringVar(&s.logs, "logs", "", "`directory` for what the specs print, a file for each mutant of charts, shards or Jobs, while they run")
	if err := errors.Join(err, flags.Parse(args)); err != nil {
		return s, err
	}
	s.seed = cmp.Or(s.seed, uint64(time.Now().UnixNano()))
	s.manager, err = filepath.Abs(s.manager)
	return s, err
}

// chosen are the plans that the flags ask for, in the order that the seed gives.
func (s settings) chosen() ([]plan.Plan, error) {
	from := plan.All()
	if s.fast {
		from = plan.Fast()
	}
	plans, err := plan.Select(from, s.plans)
	if err != nil {
		return nil, err
	}
	order := rand.New(rand.NewPCG(s.seed, 0)) //nolint:gosec // It has to be the same again.
	order.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
	return plans, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args, out)
	if err != nil {
		return err
	}
	plans, err := s.chosen()
	switch {
	case err != nil:
		return err
	case s.list:
		for _, p := range plans {
			fmt.Fprintln(out, p)
		}
		return nil
	case s.charts:
		return judgeBySpecs(ctx, s, ofCharts())
	case s.shards:
		return judgeBySpecs(ctx, s, ofShards())
	case s.jobs:
		return judgeBySpecs(ctx, s, ofJobs())
	case s.runs:
		return judgeByTests(ctx, s, ofRuns())
	case s.mutants:
		return s.onCluster(ctx, func(o trial.Options) error { return judgeMutants(ctx, s, o) })
	default:
		return s.onCluster(ctx, func(o trial.Options) error { return judgePlans(ctx, s, o, plans) })
	}
}

// judgePlans performs the plans and prints what came out of them.
func judgePlans(ctx context.Context, s settings, o trial.Options, plans []plan.Plan) error {
	fmt.Fprintf(s.out, "%d plans, %d at a time, SEED=%d\n", len(plans), s.parallel, s.seed)
	began, number := time.Now(), 0
	results, err := perform(ctx, campaign.Campaign{Parallel: s.parallel, Tell: func(r campaign.Result) {
		number++
		fmt.Fprintf(s.out, "%4d  %s\n", number, r)
	}}, o, plans)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	if err := campaign.Table(s.out, results); err != nil {
		return err
	}
	bad := campaign.Bad(results)
	took := time.Since(began).Seconds()
	fmt.Fprintf(s.out, "%d of %d plans converged without a violation; %.0f s in all\n", len(results)-len(bad), len(results), took)
	for _, r := range bad {
		fmt.Fprintln(s.out, r)
	}
	if len(bad) > 0 {
		return fmt.Errorf("%d of %d plans show violations", len(bad), len(results))
	}
	return nil
}

// onCluster boots a control plane for as long as do takes.
func (s settings) onCluster(ctx context.Context, do func(trial.Options) error) error {
	return inDirectory(func(dir string) (err error) {
		log := filepath.Join(dir, "audit.jsonl")
		cluster, err := controlplane.Start(ctx, controlplane.Options{AuditLog: log})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cluster.Stop()) }()
		return do(trial.Options{Root: s.root, Manager: s.manager, Config: cluster.Config, AuditLog: log})
	})
}

func inLab(ctx context.Context, o trial.Options, do func(*trial.Lab) error) (err error) {
	lab, err := trial.NewLab(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	return do(lab)
}
