//go:build long

package disk

import (
	"context"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/pkg/content"
)

var _ = Describe("a run on a disk that is full for a while", func() {
	It("fails when it fills the disk itself, which its end makes free again", func(ctx context.Context) {
		b := newBench()
		expectShortage(b.run(ctx, b.play(`- ansible.builtin.command: cp /dev/zero {{ lookup('env', 'ANSIBLE_LOCAL_TEMP') }}/zero
  failed_when: false
- ansible.builtin.copy: {content: text, dest: "{{ lookup('env', 'ANSIBLE_LOCAL_TEMP') }}/text"}
`), ignore))
		expectSuccess(b.run(ctx, b.play(quick), ignore))
	})

	It("has no success without counts when it is full just before them", func(ctx context.Context) {
		b := newBench()
		play := b.play("- ansible.builtin.debug: {msg: only}\n")
		result := b.run(ctx, play, func(e jobevent.Event) {
			if e.Kind == jobevent.HostOK {
				b.fill()
			}
		})
		if result.Outcome.Verdict == content.Succeeded {
			Expect(result.Summary.StatsSeen).To(BeTrue(), "the run was faster than the disk was full")
		} else {
			expectShortage(result)
		}
		b.free()
		expectSuccess(b.run(ctx, play, ignore))
	})
})

var _ = Describe("runs without shared memory, in which Ansible has its locks", func() {
	It("fail with Ansible's own words, cold and warm, and succeed when it is back", func(ctx context.Context) {
		m := startManager(ctx, newDisk(20_000, 20_000), false)
		m.create(ctx, "first")
		Eventually(ctx, m.told("Successful", "")).Should(Equal(1))
		const place = "/dev/shm"
		Expect(syscall.Mount("tmpfs", place, "tmpfs", syscall.MS_RDONLY, "")).To(Succeed())
		mounted := true
		back := func() {
			if mounted {
				Expect(syscall.Unmount(place, syscall.MNT_DETACH)).To(Succeed())
			}
			mounted = false
		}
		DeferCleanup(back)
		m.create(ctx, "cold", "warm")
		Eventually(ctx, m.told("Failure", "lack of access to /dev/shm")).Should(Equal(2))
		Eventually(m.Metrics).WithContext(ctx).Should(MatchRegexp(`ansible_operator_runs_total\{GVK="[^"]*",mode="warm"\} [2-9]`), "they are tried again, by the server too")
		back()
		Eventually(ctx, m.told("Successful", "")).Should(Equal(3))
	})
})
