package disk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness/cores"
	"github.com/ensign-operator/ensign/test/harness/scratch"
	"github.com/ensign-operator/ensign/test/harness/script"
	"github.com/ensign-operator/ensign/test/runs/bench"
)

// tight is a bench with a run directory on a disk of its own.
type tight struct {
	*bench.Bench
	disk

	mu     sync.Mutex
	logged []string
}

// newBench has the real ansible-runner, and 1,000 pages, of which a run takes
// about 100.
func newBench() *tight {
	GinkgoHelper()
	d := newDisk(1000, 1000)
	b := &tight{disk: d, Bench: bench.NewIn(GinkgoTB(), filepath.Join(d.path, "runs"), cores.Find(GinkgoTB(), ".venv"), nil)}
	b.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + b.Content, "LANG=C.UTF-8", "DISK=" + d.path}
	return b
}

// play writes a playbook with these tasks.
func (b *tight) play(tasks string) string {
	GinkgoHelper()
	name := fmt.Sprintf("play-%d.yml", len(tasks))
	scratch.Write(GinkgoTB(), b.Content, map[string]string{name: bench.Play(tasks)})
	return b.In(name)
}

// run runs a playbook, and expects that nothing of the run is left but its artifact
// and the program of all runs.
func (b *tight) run(ctx context.Context, playbook string, observe func(jobevent.Event)) runner.Result {
	GinkgoHelper()
	log := funcr.New(func(_, args string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.logged = append(b.logged, args)
	}, funcr.Options{})
	result := b.Run(logr.NewContext(ctx, log), runner.Spec{UID: uid, ID: b.Next(), Playbook: playbook, ExtraVars: []byte("\t\n{}")}, observe)
	left := slices.DeleteFunc(files(b.Runs), func(name string) bool {
		return strings.HasPrefix(name, uid+"/artifacts/") || strings.HasPrefix(name, ".program/")
	})
	Expect(left).To(ConsistOf(".lock"))
	return result
}

func ignore(jobevent.Event) {}

func expectShortage(result runner.Result) {
	GinkgoHelper()
	Expect(result.Outcome).To(And(
		HaveField("Verdict", content.Failed),
		HaveField("Message", And(ContainSubstring("the disk of the run directory has no space"), ContainSubstring("choose another disk by Options.RunDir"))),
	))
}

func expectSuccess(result runner.Result) {
	GinkgoHelper()
	Expect(result.Outcome).To(HaveField("Verdict", content.Succeeded), "%+v", result.Outcome)
}

const quick = "- ansible.builtin.command: 'true'\n"

var _ = Describe("a run on a disk that is full", func() {
	It("fails when it becomes full in the midst of the run, and succeeds when there is room", func(ctx context.Context) {
		b := newBench()
		play := b.play("- ansible.builtin.debug: {msg: begin}\n" + quick + quick)
		var once sync.Once
		expectShortage(b.run(ctx, play, func(e jobevent.Event) {
			if e.Kind == jobevent.HostOK {
				once.Do(b.fill)
			}
		}))
		b.free()
		expectSuccess(b.run(ctx, play, ignore))
	})

	It("keeps a good result when only its artifact does not fit in", func(ctx context.Context) {
		b := newBench()
		python := b.Python
		Expect(script.Environment(b.Content)).To(Succeed())
		b.Python = filepath.Join(b.Content, "bin", "python3")
		expectSuccess(b.run(ctx, b.play(quick), ignore))
		Expect(b.logged).To(ContainElement(ContainSubstring("the artifact of a run is incomplete")))
		for _, name := range files(b.Runs) {
			Expect(os.ReadFile(filepath.Join(b.Runs, name))).To(Or(BeEmpty(), HaveSuffix("\n")), "nothing is half-made")
		}
		b.free()
		b.Python = python
		expectSuccess(b.run(ctx, b.play(quick), ignore))
	})
})

var _ = Describe("the files that ansible-runner writes during a run", func() {
	It("does not grow with the number of events and lines", func(ctx context.Context) {
		b := newBench()
		var most, events int
		play := b.play("- ansible.builtin.debug: {msg: '{{ item }}'}\n  loop: '{{ range(300) | list }}'\n")
		result := b.run(ctx, play, func(jobevent.Event) {
			events++
			found, err := filepath.Glob(filepath.Join(b.Runs, uid, "run", "output", "*", "job_events", "*"))
			Expect(err).NotTo(HaveOccurred())
			most = max(most, len(found))
		})
		expectSuccess(result)
		Expect(events).To(BeNumerically(">", 300))
		Expect(most).To(BeZero(), "files of events at a time, of %d", events)
	})
})
