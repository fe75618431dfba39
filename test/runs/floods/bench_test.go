package floods

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const (
	// maxGrowth is what the manager's memory may grow by under any flood.
	maxGrowth = 64 << 20
	// maxLog is what a run with one task may write into the log.
	maxLog = 512 << 10
	// maxKept is what one run may leave, and maxLive what all of them may take in the
	// run directory at once: Ansible's own copy of an event is there until the event
	// has been read.
	maxKept, maxLive = 9 << 20, 128 << 20
	// maxStatus and maxMessage bound a status and a condition's message.
	maxStatus, maxMessage = 16 << 10, 4 << 10
)

// bench is a manager under floods.
type bench struct {
	*site.Site
	// before is the manager's memory after a run without a flood.
	before int64
	// logged is how much of the log has been looked at.
	logged int
	// largest is the most bytes that there were in the run directory.
	largest atomic.Int64
}

// newBench starts a manager with the scripted ansible-runner, or the real one.
func newBench(ctx context.Context, scripted bool, args ...string) *bench {
	GinkgoHelper()
	b := &bench{Site: ground.Site(ctx, nil)}
	b.Options.Project = filepath.Join(ground.Root, "test", "runs", "floods", "testdata", "operator")
	b.Options.Args = append([]string{"--max-backoff=1h"}, args...)
	b.Options.Env = []string{"ANSIBLE_GATHERING=explicit"}
	if scripted {
		b.Script()
	}
	b.Start(ctx, kind.Kind)
	b.Outcome(ctx, b.create(ctx, "little", "little"))
	b.before = b.memory().Resident
	b.newLog()
	DeferCleanup(harness.Every(interval, func() { b.largest.Store(max(b.largest.Load(), bytesIn(b.RunDir()))) }))
	return b
}

func (b *bench) memory() harness.Memory {
	GinkgoHelper()
	m, err := harness.MemoryOf(b.PID())
	Expect(err).NotTo(HaveOccurred())
	return m
}

func (b *bench) create(ctx context.Context, name, flood string) *unstructured.Unstructured {
	GinkgoHelper()
	cr := harness.Custom(kind, b.Namespace, name, map[string]any{"flood": flood})
	b.Create(ctx, cr)
	return cr
}

// endure has a run with the flood, and checks how it ends and what it costs.
func (b *bench) endure(ctx context.Context, flood, reason, message string) harness.Condition {
	GinkgoHelper()
	cr := b.create(ctx, flood, flood)
	result := b.Outcome(ctx, cr)
	Expect(result.Reason).To(Equal(reason))
	Expect(result.Message).To(MatchRegexp(message))
	b.expectBounds(ctx, cr)
	return result
}

// newLog is what has been logged since the last call, up to the end of a line and
// of a block.
func (b *bench) newLog() string {
	GinkgoHelper()
	var fresh string
	Eventually(func() (bool, error) {
		text, err := b.Log()
		fresh = text[b.logged:]
		whole := strings.HasSuffix(fresh, "\n") && strings.Count(fresh, "\n"+blockTop+"\n")+strings.Count(fresh, "\n"+runTop+"\n") == strings.Count(fresh, "\n"+blockBottom+"\n")
		return fresh == "" || whole, err
	}).Should(BeTrue(), "the log does not end with a whole line and block")
	b.logged += len(fresh)
	return fresh
}

// expectBounds checks what holds under every flood, and ends the CR, which would
// run again if it has failed.
func (b *bench) expectBounds(ctx context.Context, cr *unstructured.Unstructured) {
	GinkgoHelper()
	artifacts := filepath.Join(b.RunDir(), string(cr.GetUID()), "artifacts")
	all, err := filepath.Glob(filepath.Join(artifacts, "*"))
	Expect(err).NotTo(HaveOccurred())
	Expect(all).NotTo(BeEmpty())
	kept := bytesIn(artifacts) / int64(len(all))
	Expect(ground.Client.Delete(ctx, cr)).To(Succeed())
	status, err := json.Marshal(cr.Object["status"])
	Expect(err).NotTo(HaveOccurred())
	text := b.newLog()
	runs, err := b.Runs(cr)() // One that has failed may have begun again before it is looked at.
	Expect(err).NotTo(HaveOccurred())
	runs++ // Of the one before, which ends when its custom resource goes.
	grown, largest := b.memory().Peak-b.before, b.largest.Load()
	AddReportEntry("bounds", fmt.Sprintf("MiB of memory: %d, KiB of log: %d, KiB kept: %d, KiB in the run directory at once: %d", grown>>20, len(text)>>10, kept>>10, largest>>10))
	Expect(len(status)).To(BeNumerically("<=", maxStatus), "bytes of the status")
	Expect(len(harness.ConditionOf(cr, "Failure").Message)).To(BeNumerically("<=", maxMessage), "bytes of the message")
	Expect(faults(text)).To(BeEmpty(), "faults of the log")
	Expect(len(text)).To(BeNumerically("<=", runs*maxLog), "bytes of the log")
	Expect(kept).To(BeNumerically("<=", maxKept), "bytes that are kept of a run")
	Expect(largest).To(BeNumerically("<=", maxLive), "bytes in the run directory at once")
	Expect(grown).To(BeNumerically("<=", maxGrowth), "bytes by which the manager grew")
}

// bytesIn counts what can be read; files come and go.
func bytesIn(dir string) int64 {
	var total int64
	names, _ := harness.Files(dir)
	for _, name := range names {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
	}
	return total
}
