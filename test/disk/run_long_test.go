//go:build long

package disk

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

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

var _ = Describe("ansible-runner without its copy of the output", func() {
	It("reports the same", func() {
		var streams [2][]map[string]any
		for i, settings := range []string{`{}`, `{"pexpect_timeout": 0.5, "suppress_output_file": true}`} {
			dir := GinkgoT().TempDir()
			for name, text := range map[string]string{
				"env/settings":     settings,
				"inventory/hosts":  "localhost ansible_connection=local\n",
				"project/play.yml": "- hosts: localhost\n  gather_facts: false\n  tasks:\n    - ansible.builtin.debug: {msg: '{{ item }}'}\n      loop: [1, 2, 3]\n    - ansible.builtin.fail: {msg: boom}\n",
			} {
				path := filepath.Join(dir, name)
				Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
				Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
			}
			command := exec.Command(filepath.Join(ground.Root, ".venv", "bin", "ansible-runner"), "run", dir, "--json", "-p", "play.yml")
			command.Env = append(os.Environ(), "JOB_ID=7", "ANSIBLE_NOCOLOR=true")
			out, err := command.Output()
			Expect(err).To(MatchError("exit status 2"))
			for line := range strings.Lines(string(out)) {
				var event map[string]any
				Expect(json.Unmarshal([]byte(line), &event)).To(Succeed())
				streams[i] = append(streams[i], withoutChance(event, dir))
			}
		}
		Expect(len(streams[0])).To(BeNumerically(">", 10))
		Expect(streams[1]).To(Equal(streams[0]))
	})
})

// withoutChance takes out of an event what differs each time.
func withoutChance(event map[string]any, dir string) map[string]any {
	for key, value := range event {
		switch v := value.(type) {
		case map[string]any:
			event[key] = withoutChance(v, dir)
		case string:
			event[key] = strings.ReplaceAll(v, dir, "DIR")
		}
		if strings.HasSuffix(key, "uuid") || slices.Contains([]string{"created", "pid", "runner_ident", "start", "end", "duration"}, key) {
			delete(event, key)
		}
	}
	return event
}
