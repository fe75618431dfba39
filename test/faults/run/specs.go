package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/ensign-operator/ensign/test/harness"
)

// The mutants that the specs of a package have to notice. Their mark is an expression of those specs.
//
//	Spec: stays where its pre-delete hook fails
//	In a sentence, what it breaks.
//
//	--- a/…
var specFormat = regexp.MustCompile(`(?s)^Spec: ([^\n]+)\n(.+)$`)

// ofCharts are the mutants of manager or chart-exec that the specs of test/charts have to notice.
func ofCharts() kind {
	return kind{
		called: "mutants of charts", dir: "test/charts/mutants", mark: "spec", programs: []string{"manager", "chart-exec"},
		atOnce: 2, // Each has a control plane.
		format: specFormat,
	}
}

// ofShards are the mutants of the manager that the specs of test/leases have to notice.
func ofShards() kind {
	return kind{called: "mutants of shards", dir: "test/leases/mutants", mark: "spec", programs: []string{"manager"}, atOnce: 2, format: specFormat}
}

// ofJobs are the mutants of the manager, which is the agent too and needs chart-exec beside it, that the specs
// of test/jobs have to notice.
func ofJobs() kind {
	return kind{called: "mutants of Jobs", dir: "test/jobs/mutants", mark: "spec", programs: []string{"manager", "chart-exec"}, atOnce: 2, format: specFormat}
}

// judgeBySpecs shows that the specs of a package find the programs as they are good, and notice
// every mutant.
func judgeBySpecs(ctx context.Context, s settings, k kind) error {
	k.atOnce = cmp.Or(s.atOnce, k.atOnce)
	all, err := k.load(s.root, s.only)
	fmt.Fprintf(s.out, "%d %s\n", len(all), k.called)
	if err != nil || len(all) == 0 {
		return err
	}
	return inDirectory(func(dir string) error {
		tests := specSuite{root: s.root, dir: filepath.Dir(k.dir), logs: s.logs, program: filepath.Join(dir, "specs.test"), waitTimeout: harness.WaitTimeout}
		report := filepath.Join(dir, "report.json")
		if err := command(ctx, s.root, "go", "test", "-c", "-o", tests.program, "./"+tests.dir); err != nil {
			return fmt.Errorf("build the suite: %w", err)
		}
		var specs []string
		for _, m := range all {
			specs = append(specs, "("+m.marks[0]+")")
		}
		fmt.Fprintln(s.out, "first the specs of all, with the programs as they are")
		if said, err := tests.run(ctx, "as they are", filepath.Join(s.root, "bin", "manager"), strings.Join(specs, "|"), "-ginkgo.json-report="+report); err != nil || said != "" {
			return errors.Join(err, fmt.Errorf("the programs as they are would be convicted: %s", said))
		}
		if tests.waitTimeout, err = waitTimeoutAfter(report); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "the programs as they are pass; what a mutant does not do within %.0f s is not waited for\n", tests.waitTimeout.Seconds())
		return k.judge(ctx, s.root, s.out, all, func(m *mutant, dir string) (err error) {
			if m.because, err = tests.run(ctx, m.name, filepath.Join(dir, "manager"), m.marks[0]); m.because != "" {
				m.by = "its spec"
			}
			return err
		})
	})
}

// specSuite is a package of specs as a program.
type specSuite struct {
	// dir is that of the package, below root.
	root, dir, program string
	// logs is the directory that keeps what the specs print; "" for none.
	logs string
	// waitTimeout is how long its specs wait for missing results.
	waitTimeout time.Duration
}

// waitTimeoutAfter returns a waitTimeout that is enough for the programs without mutants on this machine: as
// long as the longest spec took of the report that Ginkgo wrote, and at least 40 s.
func waitTimeoutAfter(report string) (time.Duration, error) {
	text, err := os.ReadFile(report)
	var suites []types.Report
	if err == nil {
		err = json.Unmarshal(text, &suites)
	}
	if err != nil {
		return 0, fmt.Errorf("read how long the specs took: %w", err)
	}
	waitTimeout := 40 * time.Second
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			waitTimeout = max(waitTimeout, spec.RunTime)
		}
	}
	return waitTimeout, nil
}

var (
	ranSpecs = regexp.MustCompile(`Ran ([1-9]\d*) of \d+ Specs`)
	// failedSpec has the first lines of why a spec failed.
	failedSpec = regexp.MustCompile(`(?s)\n\n  \[FAILED\] (.+?)\n  In \[`)
)

// run runs the specs with the manager, and the chart-exec beside it. It returns in a line what
// the first one said that failed; "" if none did. name is that of its log.
func (c specSuite) run(ctx context.Context, name, manager, specs string, flags ...string) (said string, err error) {
	suite := exec.CommandContext(ctx, c.program, "-ginkgo.v", "-ginkgo.no-color", "-ginkgo.focus="+specs, "-manager="+manager, "-wait-timeout="+c.waitTimeout.String())
	suite.Args = append(suite.Args, flags...)
	suite.Dir = filepath.Join(c.root, c.dir)
	suite.Env = append(os.Environ(), fmt.Sprintf("PATH=%s:%s:%s", filepath.Join(c.root, ".venv", "bin"), filepath.Join(c.root, "bin", "controlplane"), os.Getenv("PATH")))
	log, err := c.log(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	var out bytes.Buffer
	suite.Stdout = io.MultiWriter(&out, log)
	suite.Stderr = suite.Stdout
	err = suite.Run()
	if !ranSpecs.Match(out.Bytes()) {
		return "", errors.Join(err, fmt.Errorf("no spec of %s ran for %q: %s", c.dir, specs, out.Bytes()))
	}
	if err == nil {
		return "", nil
	}
	found := failedSpec.FindSubmatch(out.Bytes())
	if found == nil {
		return "", fmt.Errorf("%s ended otherwise than by a spec: %w: %s", c.dir, err, out.Bytes())
	}
	return strings.Join(strings.Fields(string(found[1])), " "), nil
}

// log opens the file that keeps what the specs print, and makes its directory.
func (c specSuite) log(name string) (io.WriteCloser, error) {
	if c.logs == "" {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	if err := os.MkdirAll(c.logs, 0o755); err != nil {
		return nil, fmt.Errorf("keep what specs print: %w", err)
	}
	return os.Create(filepath.Join(c.logs, strings.ReplaceAll(name, " ", "-")+".log"))
}
