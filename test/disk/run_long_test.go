//go:build long

package disk

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

var _ = Describe("a run on a disk that is full for a while", func() {
	It("fails when it fills the disk itself, which its end makes free again", func(ctx context.Context) {
		b := newBench()
		expectShortage(b.run(ctx, b.play(`    - ansible.builtin.command: cp /dev/zero {{ lookup('env', 'ANSIBLE_LOCAL_TEMP') }}/zero
      failed_when: false
    - ansible.builtin.copy: {content: text, dest: "{{ lookup('env', 'ANSIBLE_LOCAL_TEMP') }}/text"}
`), ignore))
		expectSuccess(b.run(ctx, b.play(quick), ignore))
	})

	It("has no success without counts when it is full just before them", func(ctx context.Context) {
		b := newBench()
		play := b.play("    - ansible.builtin.debug: {msg: only}\n")
		result := b.run(ctx, play, func(e jobevent.Event) {
			if e.Kind == jobevent.HostOK {
				b.fill()
			}
		})
		if result.Outcome.Verdict == jobevent.Succeeded {
			Expect(result.Summary.StatsSeen).To(BeTrue(), "the run was faster than the disk was full")
		} else {
			expectShortage(result)
		}
		b.free()
		expectSuccess(b.run(ctx, play, ignore))
	})
})
