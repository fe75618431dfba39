package disk

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/script"
	"github.com/ensign-operator/ensign/test/harness/site"
	"github.com/ensign-operator/ensign/test/runs/bench"
)

// manager is one that keeps its runs on a disk of its own.
type manager struct{ *site.Site }

// startManager starts one, with the real Python environment or one whose runs are
// scripted: see play.
func startManager(ctx context.Context, d disk, scripted bool, args ...string) manager {
	GinkgoHelper()
	m := manager{ground.Site(ctx, map[string]string{
		"watches.yaml": "- {group: " + kind.Group + ", version: v1, kind: Item, playbook: play.yml}\n",
		"play.yml":     bench.Play(quick),
	})}
	m.Options.RunDir = filepath.Join(d.path, "runs")
	m.Options.Args = append([]string{"--max-backoff=5s"}, args...)
	if scripted {
		m.Script()
	}
	m.Start(ctx, kind.Kind)
	return m
}

// play is a run that starts a process in the background, which its end has to end, and
// succeeds after 0.2 s. With DISK in its environment it fills that up once it has
// succeeded.
func play(r *script.Run) (int, error) {
	if path := os.Getenv("DISK"); path != "" {
		r.Stats(1, 0)
		_ = exec.Command("cp", "/dev/zero", disk{path}.filler()).Run() // It fails when there is no space.
		return 0, nil
	}
	err := exec.Command("setsid", "sleep", "600").Start()
	<-time.After(time.Second / 5)
	r.Stats(1, 0)
	return 0, err
}

// create makes items with these names.
func (m manager) create(ctx context.Context, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		m.Create(ctx, m.item(name))
	}
}

// item is an item of that name, as it is before it is created.
func (m manager) item(name string) *unstructured.Unstructured {
	return harness.Custom(kind, m.Namespace, name, map[string]any{})
}

// told counts the items for which a condition is true with a message that has
// the text in it.
func (m manager) told(condition, text string) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		items := &unstructured.UnstructuredList{}
		items.SetGroupVersionKind(kind.WithVersion("v1"))
		err := ground.Client.List(ctx, items, client.InNamespace(m.Namespace))
		found := 0
		for i := range items.Items {
			if c := harness.ConditionOf(&items.Items[i], condition); c.Status == "True" && strings.Contains(c.Message, text) {
				found++
			}
		}
		return found, err
	}
}

// files counts the open files of the process.
func (m manager) files() int {
	GinkgoHelper()
	count, err := harness.Descriptors(m.PID())
	Expect(err).NotTo(HaveOccurred())
	return count
}

// limitFiles lets the process open so many files, and gives the limit before.
func (m manager) limitFiles(limit uint64) (before uint64) {
	GinkgoHelper()
	before, err := harness.Limit(m.PID(), syscall.RLIMIT_NOFILE, limit)
	Expect(err).NotTo(HaveOccurred())
	return before
}

var _ = Describe("a manager", func() {
	It("reports a full disk, and goes on by itself when there is room", func(ctx context.Context) {
		d := newDisk(2000, 2000)
		m := startManager(ctx, d, false)
		d.fill()
		m.create(ctx, "one", "two")
		Eventually(ctx, m.told("Failure", "the disk of the run directory has no space")).Should(Equal(2))
		d.free()
		Eventually(ctx, m.told("Successful", "")).Should(Equal(2))
	})

	It("ends when it is told to though it may open no file", func(ctx context.Context) {
		m := startManager(ctx, newDisk(20_000, 20_000), true)
		m.create(ctx, "first")
		Eventually(ctx, m.told("Successful", "")).Should(Equal(1))
		limit := m.limitFiles(3)
		DeferCleanup(func() {
			if m.ExitCode() < 0 {
				m.limitFiles(limit)
			}
		})
		Expect(m.Stop()).To(Succeed())
		Eventually(m.Processes).Should(BeEmpty())
	})
})

// ask sends a GET request and tells when an answer has come, whatever it is.
func ask(url string) <-chan error {
	answer := make(chan error, 1)
	go func() {
		// The proxy's certificate is made at its start, and signed by nobody.
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		response, err := c.Get(url)
		if err == nil {
			err = response.Body.Close()
		}
		answer <- err
	}()
	return answer
}

func numbered(name string, count int) []string {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("%s-%02d", name, i))
	}
	return names
}

// visible lists the directories of resources in a run directory, in which there
// must be artifacts alone.
func visible(runs string) []string {
	GinkgoHelper()
	entries, err := filepath.Glob(filepath.Join(runs, "[^.]*"))
	Expect(err).NotTo(HaveOccurred())
	for _, entry := range entries {
		inside, err := os.ReadDir(entry)
		Expect(err).NotTo(HaveOccurred())
		Expect(inside).To(ConsistOf(HaveField("Name()", "artifacts")))
	}
	return entries
}
