package floods

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

const (
	// maxGrowth is what the manager's memory may grow by under any flood.
	maxGrowth = 64 << 20
	// maxLog is what a run with one task may write into the log: it may have begun a
	// second time before it is looked at.
	maxLog = 2 * (512 << 10)
	// maxKept is what one run may leave, and maxLive what all of them may take in the
	// run directory at once: Ansible's own copy of an event is there until the event
	// has been read.
	maxKept, maxLive = 9 << 20, 128 << 20
	// maxStatus and maxMessage bound a status and a condition's message.
	maxStatus, maxMessage = 16 << 10, 4 << 10
)

// bench is a manager under floods.
type bench struct {
	*harness.Manager
	namespace string
	home      string
	// before is the manager's memory after a run without a flood.
	before int64
	// logged is how much of the log has been looked at.
	logged int
	size   *size
}

// newBench starts a manager with the scripted ansible-runner, or the real one.
func newBench(ctx context.Context, scripted bool, args ...string) *bench {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "floods-"}}
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	project, err := filepath.Abs(filepath.Join("testdata", "operator"))
	Expect(err).NotTo(HaveOccurred())
	b := &bench{namespace: namespace.Name, home: shortDir()}
	options := harness.Options{
		Binary: filepath.Join(root, "bin", "manager"), Project: project, Kubeconfig: cluster.Kubeconfig, Home: b.home, Namespace: b.namespace,
		Args: append([]string{"--max-backoff=1h"}, args...),
		Env:  []string{"ANSIBLE_GATHERING=explicit"},
	}
	if scripted {
		options.Env = append(options.Env, "VIRTUAL_ENV="+scriptedEnvironment())
	}
	b.Manager, err = harness.Start(options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(b.Stop()).To(Succeed()) })
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	Expect(b.Ready(limited, kind.Kind)).To(Succeed())
	b.ends(ctx, b.create(ctx, "little", "little"))
	b.before = b.memory().Resident
	b.newLog()
	b.size = watchSize(b.RunDir())
	DeferCleanup(b.size.end)
	return b
}

// scriptedEnvironment is a Python environment whose programs are this test.
func scriptedEnvironment() string {
	GinkgoHelper()
	dir := shortDir()
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	Expect(os.Mkdir(filepath.Join(dir, "bin"), 0o700)).To(Succeed())
	for _, name := range []string{"python3", "ansible-runner", "ansible-playbook"} {
		Expect(os.Symlink(self, filepath.Join(dir, "bin", name))).To(Succeed())
	}
	return dir
}

// shortDir is a temporary directory with a path that Ansible can put sockets below.
func shortDir() string {
	GinkgoHelper()
	dir, err := os.MkdirTemp("/tmp", "efl-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(os.RemoveAll(dir)).To(Succeed()) })
	return dir
}

func (b *bench) memory() harness.Memory {
	GinkgoHelper()
	m, err := harness.MemoryOf(b.PID())
	Expect(err).NotTo(HaveOccurred())
	return m
}

func (b *bench) create(ctx context.Context, name, flood string) *unstructured.Unstructured {
	GinkgoHelper()
	cr := harness.Custom(kind, b.namespace, name, map[string]any{"flood": flood})
	Expect(k8s.Create(ctx, cr)).To(Succeed())
	return cr
}

// ends waits for the CR's first result.
func (b *bench) ends(ctx context.Context, cr *unstructured.Unstructured) harness.Condition {
	GinkgoHelper()
	var result harness.Condition
	Eventually(ctx, func(ctx context.Context) (string, error) {
		err := k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr)
		result = harness.Condition{}
		for _, name := range []string{"Successful", "Failure"} {
			if c := harness.ConditionOf(cr, name); c.Status == "True" {
				result = c
			}
		}
		return result.Reason, err
	}).ShouldNot(BeEmpty(), "%s is at work", cr.GetName())
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
		whole := strings.HasSuffix(fresh, "\n") && strings.Count(fresh, "\n"+blockTop+"\n") == strings.Count(fresh, "\n"+blockBottom+"\n")
		return fresh == "" || whole, err
	}).Should(BeTrue(), "the log does not end with a whole line and block")
	b.logged += len(fresh)
	return fresh
}

// expectBounds checks what holds under every flood, and ends the CR, which would
// run again if it has failed.
func (b *bench) expectBounds(ctx context.Context, cr *unstructured.Unstructured) {
	GinkgoHelper()
	kept := bytesIn(filepath.Join(b.RunDir(), string(cr.GetUID()), "artifacts"))
	Expect(k8s.Delete(ctx, cr)).To(Succeed())
	status, err := json.Marshal(cr.Object["status"])
	Expect(err).NotTo(HaveOccurred())
	text := b.newLog()
	grown, largest := b.memory().Peak-b.before, b.size.most.Load()
	AddReportEntry("bounds", fmt.Sprintf("MiB of memory: %d, KiB of log: %d, KiB kept: %d, KiB in the run directory at once: %d", grown>>20, len(text)>>10, kept>>10, largest>>10))
	Expect(len(status)).To(BeNumerically("<=", maxStatus), "bytes of the status")
	Expect(len(harness.ConditionOf(cr, "Failure").Message)).To(BeNumerically("<=", maxMessage), "bytes of the message")
	Expect(faults(text)).To(BeEmpty(), "faults of the log")
	Expect(len(text)).To(BeNumerically("<=", maxLog), "bytes of the log")
	Expect(kept).To(BeNumerically("<=", maxKept), "bytes that are kept of the run")
	Expect(largest).To(BeNumerically("<=", maxLive), "bytes in the run directory at once")
	Expect(grown).To(BeNumerically("<=", maxGrowth), "bytes by which the manager grew")
}

// size watches the bytes in a directory.
type size struct {
	most        atomic.Int64
	stop, ended chan struct{}
}

func watchSize(dir string) *size {
	s := &size{stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-ticker.C:
				s.most.Store(max(s.most.Load(), bytesIn(dir)))
			}
		}
	}()
	return s
}

func (s *size) end() {
	close(s.stop)
	<-s.ended
}

// bytesIn counts what can be read; files come and go.
func bytesIn(dir string) int64 {
	var total int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // It is gone.
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total
}
