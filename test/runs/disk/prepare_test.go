package disk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/internal/process/rundir"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/runs/bench"
)

const uid = bench.UID

// inputs take several pages each, so that disks become full in the midst of them.
func inputs(dir string) rundir.Inputs {
	GinkgoHelper()
	inventory := filepath.Join(dir, "inventory")
	for _, group := range []string{"a", "b"} {
		Expect(os.MkdirAll(filepath.Join(inventory, group), 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(inventory, group, "hosts"), make([]byte, 3*page), 0o600)).To(Succeed())
	}
	return rundir.Inputs{ExtraVars: make([]byte, 3*page+1), Kubeconfig: make([]byte, page+1), Inventory: inventory}
}

// outOf prepares runs on ever larger disks until one fits in, and checks after
// each that did not that nothing of it is left and that the next one does.
func outOf(mount func(step int) disk, enlarge func(disk)) (failures int) {
	GinkgoHelper()
	in := inputs(GinkgoT().TempDir())
	for step := 1; ; step++ {
		d := mount(step)
		runs := filepath.Join(d.path, "runs")
		r, err := rundir.Open(runs)
		if err != nil {
			Expect(errors.Is(err, syscall.ENOSPC)).To(BeTrue(), "step %d: %v", step, err)
			enlarge(d)
			r, err = rundir.Open(runs)
		}
		Expect(err).NotTo(HaveOccurred())
		failed := !fits(r, in, step)
		if failed {
			failures++
			Expect(files(runs)).To(ConsistOf(".lock"), "step %d", step)
			Expect(filepath.Join(runs, uid, "run")).NotTo(BeADirectory(), "step %d", step)
			Expect(r.Bytes()).To(BeZero())
			enlarge(d)
			Expect(fits(r, in, step)).To(BeTrue(), "step %d: there is room now", step)
		}
		Expect(r.Close()).To(Succeed())
		if !failed && failures > 0 {
			return failures
		}
	}
}

// fits prepares a run and ends it again. It is false when the disk is full.
func fits(r *rundir.Root, in rundir.Inputs, step int) bool {
	GinkgoHelper()
	run, err := r.Prepare(uid, fmt.Sprintf("run-%d", step), in)
	if err != nil {
		Expect(errors.Is(err, syscall.ENOSPC)).To(BeTrue(), "step %d: %v", step, err)
		return false
	}
	for name, want := range map[string][]byte{"env/extravars": in.ExtraVars, "kubeconfig": in.Kubeconfig, "inventory/b/hosts": make([]byte, 3*page)} {
		Expect(os.ReadFile(filepath.Join(run.Private, name))).To(Equal(want), "step %d, %s", step, name)
	}
	Expect(run.Close(0)).To(Succeed())
	return true
}

var _ = Describe("a directory that is prepared for a run", func() {
	It("is whole or is not there, whichever file or directory lacks an inode", func() {
		failures := outOf(
			func(step int) disk { return newDisk(1000, step) },
			func(d disk) { d.resize(1000, 1000) },
		)
		Expect(failures).To(BeNumerically(">=", 16), "one for each file and directory of a run")
	})

	It("is whole or is not there, whichever page of a file does not fit in", func() {
		failures := outOf(
			func(step int) disk { return newDisk(step, 1000) },
			func(d disk) { d.resize(1000, 1000) },
		)
		Expect(failures).To(BeNumerically(">=", 11), "one for each page of the inputs")
	})

	It("is not there where the disk can only be read, and is when it can be written again", func() {
		d := newDisk(1000, 1000)
		runs := filepath.Join(d.path, "runs")
		r, err := rundir.Open(runs)
		Expect(err).NotTo(HaveOccurred())
		in := inputs(GinkgoT().TempDir())
		Expect(fits(r, in, 1)).To(BeTrue())
		own := filepath.Join(runs, uid)
		Expect(syscall.Mount(own, own, "", syscall.MS_BIND, "")).To(Succeed())
		Expect(syscall.Mount(own, own, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")).To(Succeed())
		_, err = r.Prepare(uid, "run-2", in)
		Expect(errors.Is(err, syscall.EROFS)).To(BeTrue(), "got %v", err)
		Expect(errors.Is(r.Remove(uid), syscall.EROFS)).To(BeTrue())
		Expect(syscall.Unmount(own, syscall.MNT_DETACH)).To(Succeed())
		Expect(fits(r, in, 3)).To(BeTrue())
		Expect(r.Remove(uid)).To(Succeed())
		Expect(r.Close()).To(Succeed())
	})

	It("is not there when a file becomes larger than the process may write", func() {
		d := newDisk(1000, 1000)
		r, err := rundir.Open(filepath.Join(d.path, "runs"))
		Expect(err).NotTo(HaveOccurred())
		in := inputs(GinkgoT().TempDir())
		for _, limit := range []uint64{0, 1, page, 3 * page} {
			end := limited(syscall.RLIMIT_FSIZE, limit)
			_, err := r.Prepare(uid, "run-1", in)
			end()
			Expect(errors.Is(err, syscall.EFBIG)).To(BeTrue(), "limit %d: got %v", limit, err)
			Expect(files(d.path)).To(ConsistOf("runs/.lock"))
		}
		Expect(fits(r, in, 2)).To(BeTrue())
		Expect(r.Close()).To(Succeed())
	})
})

var _ = Describe("an artifact on a disk that becomes full", func() {
	It("has whole lines only, and goes on when there is room", func() {
		d := newDisk(100, 1000)
		r, err := rundir.Open(filepath.Join(d.path, "runs"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(r.Close)
		run, err := r.Prepare(uid, "run", rundir.Inputs{})
		Expect(err).NotTo(HaveOccurred())
		events, err := run.Create("events.jsonl")
		Expect(err).NotTo(HaveOccurred())
		line := []byte(strings.Repeat("x", 999) + "\n")
		for err == nil {
			_, err = events.Write(line)
		}
		Expect(errors.Is(err, syscall.ENOSPC)).To(BeTrue(), "got %v", err)
		Expect(errors.Is(run.WriteFile("outcome.json", line), syscall.ENOSPC)).To(BeTrue())
		d.resize(1000, 1000)
		Expect(events.Write([]byte("last\n"))).To(Equal(5))
		Expect(events.Close()).To(Succeed())
		Expect(run.Close(0)).To(Succeed())
		names := files(filepath.Join(d.path, "runs", uid))
		Expect(names).To(ConsistOf(HaveSuffix("/events.jsonl")), "no half of outcome.json")
		content, err := os.ReadFile(filepath.Join(d.path, "runs", uid, names[0]))
		Expect(err).NotTo(HaveOccurred())
		whole, _ := strings.CutSuffix(string(content), "last\n")
		Expect(whole).To(Equal(strings.Repeat(string(line), len(whole)/len(line))))
		Expect(len(whole)).To(BeNumerically(">", 50*page))
	})
})

var _ = Describe("a process that is killed while it prepares runs", func() {
	It("leaves nothing that the next one uses", func() {
		d := newDisk(10_000, 10_000)
		runs := filepath.Join(d.path, "runs")
		in := inputs(GinkgoT().TempDir())
		half := 0
		for try := 0; try < 40 && (try < 10 || half == 0); try++ {
			victim := exec.Command("/proc/self/exe")
			victim.Env = append(os.Environ(), endless+"="+runs, endlessInventory+"="+in.Inventory)
			Expect(victim.Start()).To(Succeed())
			Eventually(func() []string { return files(d.path) }).WithPolling(time.Millisecond).Should(ContainElement(ContainSubstring("/run/")))
			Expect(victim.Process.Kill()).To(Succeed())
			Expect(victim.Wait()).NotTo(Succeed())
			if slices.ContainsFunc(files(runs), func(name string) bool { return !strings.Contains(name, "/artifacts/") && name != ".lock" }) {
				half++
			}
			r, err := rundir.Open(runs)
			Expect(err).NotTo(HaveOccurred())
			Expect(files(runs)).To(HaveEach(Or(Equal(".lock"), ContainSubstring("/artifacts/"))))
			Expect(fits(r, in, try)).To(BeTrue())
			Expect(r.Close()).To(Succeed())
		}
		Expect(half).To(BeNumerically(">", 0), "some were killed in the midst")
	})
})

// A process with these in its environment prepares runs until it is killed, or gives up.
const (
	endless          = "ENSIGN_TEST_PREPARE_IN"
	endlessInventory = "ENSIGN_TEST_PREPARE_FROM"
)

func prepareEndlessly(runs string) error {
	r, err := rundir.Open(runs)
	if err != nil {
		return err
	}
	for start := time.Now(); time.Since(start) < harness.WaitTimeout; {
		run, err := r.Prepare(uid, "endless", rundir.Inputs{ExtraVars: make([]byte, 10*page), Inventory: os.Getenv(endlessInventory)})
		if err != nil {
			return err
		}
		if err := run.Close(1); err != nil {
			return err
		}
	}
	return errors.New("nobody killed this process")
}

var _ = Describe("a directory that cannot be removed for want of a descriptor", func() {
	It("is removed when the next run of any resource ends, or by a sweep", func() {
		d := newDisk(1000, 1000)
		r, err := rundir.Open(filepath.Join(d.path, "runs"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(r.Close)
		for _, remedy := range []func(){
			func() {
				run, err := r.Prepare("another", "run", rundir.Inputs{})
				Expect(err).NotTo(HaveOccurred())
				Expect(run.Close(0)).To(Succeed())
			},
			func() {
				_, err := r.Sweep(func(string) bool { return true })
				Expect(err).NotTo(HaveOccurred())
			},
		} {
			run, err := r.Prepare(uid, "run", rundir.Inputs{Kubeconfig: []byte("token")})
			Expect(err).NotTo(HaveOccurred())
			give := limited(syscall.RLIMIT_NOFILE, 3) // No further file.
			err = run.Close(0)
			give()
			Expect(errors.Is(err, syscall.EMFILE)).To(BeTrue(), "got %v", err)
			Expect(files(d.path)).To(ContainElement(HaveSuffix("kubeconfig")))
			remedy()
			Expect(files(d.path)).NotTo(ContainElement(HaveSuffix("kubeconfig")))
		}
		give := limited(syscall.RLIMIT_NOFILE, 3) // No further file.
		err = r.Remove(uid)
		give()
		Expect(errors.Is(err, syscall.EMFILE)).To(BeTrue(), "got %v", err)
		_, err = r.Sweep(func(uid string) bool { return uid == "another" })
		Expect(err).NotTo(HaveOccurred())
		Expect(r.UIDs()).To(ConsistOf("another"))
		Expect(filepath.Glob(filepath.Join(d.path, "runs", ".trash*"))).To(BeEmpty())
	})
})

// limited limits this process until end is called.
func limited(resource int, limit uint64) (end func()) {
	GinkgoHelper()
	before, err := harness.Limit(os.Getpid(), resource, limit)
	Expect(err).NotTo(HaveOccurred())
	return func() {
		GinkgoHelper()
		Expect(harness.Limit(os.Getpid(), resource, before)).To(Equal(limit))
	}
}
