package site

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/script"
)

// Calm is for how long nothing more must happen once all is up to date: the informers
// have shown it by then.
const Calm = 2 * time.Second

// Site is a namespace and an operator for it.
type Site struct {
	// Manager is the one that was started last, nil before the first.
	*harness.Manager

	Namespace string
	// Dir is a short directory for whatever a test needs. It holds the project, whose
	// directory is Options.Project, and what managers write.
	Dir string
	// Options are those of the next manager.
	Options harness.Options
	ground  *Ground
}

// Write writes files of the project.
func (s *Site) Write(files map[string]string) {
	ginkgo.GinkgoHelper()
	for name, text := range files {
		path, mode := filepath.Join(s.Options.Project, name), os.FileMode(0o600)
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		gomega.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(gomega.Succeed())
		gomega.Expect(os.WriteFile(path, []byte(text), mode)).To(gomega.Succeed())
	}
}

// Start starts the next manager, waits until it watches the kinds, and stops it with
// the spec or container, unless it has ended before.
func (s *Site) Start(ctx context.Context, kinds ...string) *Site {
	ginkgo.GinkgoHelper()
	if harness.InJobs() {
		s.runInJobs()
	}
	m, err := harness.Start(s.Options)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	s.Manager = m
	ginkgo.DeferCleanup(func() {
		text, err := m.Log()
		ginkgo.GinkgoWriter.Printf("--- the manager's log (%v)\n%s\n", err, text)
		select {
		case <-m.Ended():
		default:
			gomega.Expect(m.Stop()).To(gomega.Succeed())
		}
	})
	gomega.Expect(m.Ready(ctx, kinds...)).To(gomega.Succeed())
	return s
}

// FailsAtStart starts a manager that ends by itself, and gives its exit code and what
// it said.
func (s *Site) FailsAtStart(ctx context.Context) (int, string) {
	ginkgo.GinkgoHelper()
	m, err := harness.Start(s.Options)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(m.Kill)
	gomega.Eventually(ctx, m.Ended()).Should(gomega.BeClosed())
	text, err := m.Log()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return m.ExitCode(), text
}

// Create creates CRs or other objects.
func (s *Site) Create(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	s.ground.Create(ctx, objects...)
}

// Script lets the site's managers work with the Python environment that the test binary
// plays: see script.Main.
func (s *Site) Script() {
	ginkgo.GinkgoHelper()
	dir := filepath.Join(s.Dir, "script")
	gomega.Expect(script.Environment(dir)).To(gomega.Succeed())
	s.Options.Env = append(s.Options.Env, "VIRTUAL_ENV="+dir)
}

// Outcome waits for the CR's first result, and reads the CR.
func (s *Site) Outcome(ctx context.Context, cr *unstructured.Unstructured) (result harness.Condition) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) (string, error) {
		err := s.ground.Client.Get(ctx, client.ObjectKeyFromObject(cr), cr)
		result = harness.ConditionOf(cr, "Successful")
		if result.Status != "True" {
			result = harness.ConditionOf(cr, "Failure")
		}
		return result.Status, err
	}).Should(gomega.Equal("True"), "%s is at work", cr.GetName())
	return result
}

// Runs counts those that this manager has started for the CR.
func (s *Site) Runs(cr client.Object) func() (int, error) { return s.lines("run started", cr) }

// Ended counts the runs that have ended well. It gives up when one has ended otherwise.
func (s *Site) Ended(cr client.Object) func() (int, error) {
	failed, ended := s.lines("run failed", cr), s.lines("run succeeded", cr)
	return func() (int, error) {
		if count, err := failed(); count > 0 {
			return 0, gomega.StopTrying("a run failed").Wrap(err)
		}
		return ended()
	}
}

// Failed counts the runs that have failed.
func (s *Site) Failed(cr client.Object) func() (int, error) { return s.lines("run failed", cr) }

// Pauses returns the times from the end of each run of the CR to the begin of the next, as the
// log's own times show them.
func (s *Site) Pauses(cr client.Object) (pauses []time.Duration) {
	ginkgo.GinkgoHelper()
	text, err := s.Log()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	var ended time.Time
	line := regexp.MustCompile(`(?m)^(\d\S+)\t.*(run started|run succeeded|run failed).*"cr": "` + regexp.QuoteMeta(cr.GetNamespace()+"/"+cr.GetName()) + `"`)
	for _, found := range line.FindAllStringSubmatch(text, -1) {
		at, err := time.Parse("2006-01-02T15:04:05.999Z07:00", found[1])
		gomega.Expect(err).NotTo(gomega.HaveOccurred(), found[0])
		switch {
		case found[2] != "run started":
			ended = at
		case !ended.IsZero():
			pauses = append(pauses, at.Sub(ended))
		}
	}
	return pauses
}

func (s *Site) lines(what string, cr client.Object) func() (int, error) {
	name := strings.TrimPrefix(cr.GetNamespace()+"/"+cr.GetName(), "/")
	line := regexp.MustCompile(what + `.*"cr": "` + regexp.QuoteMeta(name) + `"`)
	return func() (int, error) {
		text, err := s.Log()
		return len(line.FindAllString(text, -1)), err
	}
}

// Settles waits until the CR has had so many runs of this manager, and then no more.
func (s *Site) Settles(cr client.Object, runs int) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(s.Ended(cr)).Should(gomega.BeNumerically(">=", runs))
	gomega.Consistently(s.Runs(cr), Calm).Should(gomega.Equal(runs))
}

// Calms waits until no run has begun for a while, and says how many there were.
func (s *Site) Calms(cr client.Object) int {
	ginkgo.GinkgoHelper()
	var runs int
	ended := s.lines("run (succeeded|failed)", cr)
	gomega.Eventually(func(g gomega.Gomega) {
		var err error
		runs, err = s.Runs(cr)()
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(ended()).To(gomega.Equal(runs))
		g.Consistently(s.Runs(cr), Calm).Should(gomega.Equal(runs))
	}).Should(gomega.Succeed())
	return runs
}

// Watched waits until the manager sees all changes of the resources, because they
// are children or referred to.
func (s *Site) Watched(ctx context.Context, resources ...string) {
	ginkgo.GinkgoHelper()
	for _, resource := range resources {
		gomega.Eventually(ctx, s.Metrics).Should(gomega.MatchRegexp(`ansible_operator_watched_kind\{[^}]*purpose="related"[^}]*resource="%s",state="live"\} 1`, regexp.QuoteMeta(resource)))
	}
}

// Condition reads a condition of the CR as it stands, the zero value where it has none.
func (s *Site) Condition(cr *unstructured.Unstructured, kind string) func(context.Context) (harness.Condition, error) {
	return func(ctx context.Context) (harness.Condition, error) {
		current := cr.DeepCopy()
		err := s.ground.Client.Get(ctx, client.ObjectKeyFromObject(cr), current)
		return harness.ConditionOf(current, kind), err
	}
}
