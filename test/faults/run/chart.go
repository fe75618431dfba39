package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ensign-operator/ensign/test/faults/mutation"
)

// chartMutantFormat is how the file of a mutant of charts begins. The expression is of the
// specs of test/charts that have to notice it.
//
//	Spec: stays where its pre-delete hook fails
//	In a sentence, what it breaks.
//
//	--- a/…
var chartMutantFormat = regexp.MustCompile(`(?s)^Spec: ([^\n]+)\n(.+)$`)

// chartMutant is a patch of manager or chart-exec that breaks a promise about releases.
type chartMutant struct {
	mutation.Patch

	spec, breaks string
	// said is what the spec said that noticed it; "" if none did.
	said string
	err  error
	took time.Duration
}

// loadChartMutants reads the mutants of charts of the repository in root.
func loadChartMutants(root string) ([]*chartMutant, error) {
	patches, err := mutation.Load(filepath.Join(root, "test", "charts", "mutants"))
	var found []*chartMutant
	errs := []error{err}
	for _, patch := range patches {
		head := chartMutantFormat.FindStringSubmatch(patch.Head)
		if head == nil {
			errs = append(errs, fmt.Errorf("mutant %s does not begin with a line \"Spec: EXPRESSION\" and a sentence", patch.Path))
			continue
		}
		found = append(found, &chartMutant{Patch: patch, spec: head[1], breaks: head[2]})
	}
	return found, errors.Join(errs...)
}

// judgeChartMutants shows that the specs of charts find the programs as they are good, and
// notice every mutant.
func judgeChartMutants(ctx context.Context, s settings, root string) (err error) {
	all, err := loadChartMutants(root)
	if err != nil {
		return err
	}
	only, err := regexp.Compile(s.only)
	if err != nil {
		return fmt.Errorf("select mutants: %w", err)
	}
	dir, err := os.MkdirTemp("", "ec-")
	if err != nil {
		return fmt.Errorf("make a place for the suite: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	suite := chartSuite{root: root, program: filepath.Join(dir, "charts.test")}
	if err := suite.build(ctx); err != nil {
		return err
	}
	var chosen []*chartMutant
	var specs []string
	for _, m := range all {
		if only.MatchString(m.Name) {
			chosen, specs = append(chosen, m), append(specs, "("+m.spec+")")
		}
	}
	fmt.Fprintf(s.out, "%d mutants of charts\n", len(chosen))
	if len(chosen) == 0 {
		return nil
	}
	if said, err := suite.run(ctx, filepath.Join(root, "bin", "manager"), strings.Join(specs, "|")); err != nil || said != "" {
		return errors.Join(err, fmt.Errorf("the programs as they are would be convicted: %s", said))
	}
	var tried errgroup.Group
	tried.SetLimit(2) // Each has a control plane.
	for _, m := range chosen {
		tried.Go(func() error {
			began := time.Now()
			m.try(ctx, suite, filepath.Join(dir, m.Name))
			m.took = time.Since(began)
			fmt.Fprintf(s.out, "%-9s %s\n", m.verdict(), m.Name)
			return ctx.Err()
		})
	}
	if err := tried.Wait(); err != nil {
		return err
	}
	return reportChartMutants(s.out, chosen)
}

// try builds the mutant and runs the specs that have to notice it.
func (m *chartMutant) try(ctx context.Context, suite chartSuite, dir string) {
	if m.err = os.Mkdir(dir, 0o700); m.err != nil {
		return
	}
	if m.err = m.Build(ctx, suite.root, dir, "manager", "chart-exec"); m.err == nil {
		m.said, m.err = suite.run(ctx, filepath.Join(dir, "manager"), m.spec)
	}
	m.err = errors.Join(m.err, os.RemoveAll(dir))
}

func (m *chartMutant) verdict() string {
	switch {
	case m.err != nil:
		return "ERROR"
	case m.said == "":
		return "SURVIVED"
	default:
		return "caught"
	}
}

// failed is nil for a mutant that was noticed.
func (m *chartMutant) failed() error {
	if m.err == nil && m.said == "" {
		return fmt.Errorf("mutant %s survived: %s", m.Name, m.breaks)
	}
	return m.err
}

// reportChartMutants prints the table. It is an error when a mutant survived.
func reportChartMutants(out io.Writer, mutants []*chartMutant) error {
	rows := make([]row, len(mutants))
	for i, m := range mutants {
		rows[i] = row{[]string{m.Name, m.verdict(), m.spec, m.said}, m.took, m.failed()}
	}
	return tabulate(out, "mutants of charts", []string{"mutant", "verdict", "spec", "because"}, rows)
}

// chartSuite is test/charts as a program.
type chartSuite struct{ root, program string }

func (c chartSuite) build(ctx context.Context) error {
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", c.program, "./test/charts")
	build.Dir = c.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the suite of charts: %w: %s", err, out)
	}
	return nil
}

var (
	ranSpecs = regexp.MustCompile(`Ran ([1-9]\d*) of \d+ Specs`)
	// failedSpec has the first lines of why a spec failed.
	failedSpec = regexp.MustCompile(`(?s)\n\n  \[FAILED\] (.+?)\n  In \[`)
)

// run runs the specs with the manager, and the chart-exec beside it. It returns in a line what
// the first one said that failed; "" if none did.
func (c chartSuite) run(ctx context.Context, manager, specs string) (said string, err error) {
	const patience = "40s" // What does not come by then is not waited for.
	suite := exec.CommandContext(ctx, c.program, "-ginkgo.no-color", "-ginkgo.focus="+specs, "-manager="+manager, "-patience="+patience)
	suite.Dir = filepath.Join(c.root, "test", "charts")
	suite.Env = append(os.Environ(), fmt.Sprintf("PATH=%s:%s:%s", filepath.Join(c.root, ".venv", "bin"), filepath.Join(c.root, "bin", "controlplane"), os.Getenv("PATH")))
	var out bytes.Buffer
	suite.Stdout, suite.Stderr = &out, &out
	err = suite.Run()
	if !ranSpecs.Match(out.Bytes()) {
		return "", errors.Join(err, fmt.Errorf("no spec of test/charts ran for %q: %s", specs, out.Bytes()))
	}
	if err == nil {
		return "", nil
	}
	found := failedSpec.FindSubmatch(out.Bytes())
	if found == nil {
		return "", fmt.Errorf("the suite of charts ended otherwise than by a spec: %w: %s", err, out.Bytes())
	}
	return oneLine(strings.Join(strings.Fields(string(found[1])), " ")), nil
}
