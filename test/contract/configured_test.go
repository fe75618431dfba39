package contract

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// ensign runs a command in the project's directory, which has to end well.
func ensign(ctx context.Context, s *site.Site, args ...string) string {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, filepath.Join(ground.Root, "bin", "ensign"), args...)
	cmd.Dir = s.Options.Project
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Dir, "KUBECONFIG=" + s.Options.Kubeconfig}, s.Options.Env...)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}

var _ = Describe("a project whose roles, collections, plugins, callbacks and vault stand in its ansible.cfg", Ordered, func() {
	var (
		s    *site.Site
		note string
	)
	box, lid := kindOf("shell", "Box"), kindOf("shell", "Lid")
	BeforeAll(func(ctx context.Context) {
		s = operator(ctx, "configured", box.Group, box.Kind, lid.Kind)
		note = filepath.Join(s.Dir, "note")
		s.Options.Env = append(s.Options.Env, "NOTE="+note)
	})
	// noted counts the plays that the project's callback has seen.
	noted := func() int {
		text, _ := os.ReadFile(note) // It is not there before the first.
		return strings.Count(string(text), "seen")
	}

	row("§2 ansible.cfg", "it is found beside watches.yaml, by the manager, run-once and check", func(ctx context.Context) {
		Expect(ensign(ctx, s, "check")).To(ContainSubstring("0 errors, 0 warnings"))
		s.Start(ctx, box.Kind, lid.Kind)
		boxed, covered := harness.Custom(box, s.Namespace, "box", nil), harness.Custom(lid, s.Namespace, "lid", nil)
		s.Create(ctx, boxed, covered)
		s.Settles(boxed, 1)
		s.Settles(covered, 1)
		Expect(noted()).To(BeNumerically(">=", 2))
		Expect(s.Stop()).To(Succeed())
		before := noted()
		Expect(ensign(ctx, s, "run-once", "-n", s.Namespace, "box/box")).To(ContainSubstring("succeeded"))
		Expect(noted()).To(Equal(before+2), "the play that tries the environment, and the run's")
	})

	row("§2 ansible.cfg", "another one is a reason to run, and one that stops Ansible is named", func(ctx context.Context) {
		boxed := harness.Custom(box, s.Namespace, "box", nil)
		settings := filepath.Join(s.Options.Project, "ansible.cfg")
		text, err := os.ReadFile(settings)
		Expect(err).NotTo(HaveOccurred())
		s.Write(map[string]string{"ansible.cfg": string(text) + "forks = 3\n"})
		s.Start(ctx, box.Kind)
		s.Settles(boxed, 1)
		Expect(s.Log()).To(MatchRegexp(`run started.*/box".*"reason": "content changed"`))
		Expect(s.Stop()).To(Succeed())
		s.Write(map[string]string{"ansible.cfg": string(text) + "forks = many\n"})
		code, said := s.FailsAtStart(ctx)
		Expect(code).To(Equal(1))
		Expect(said).To(ContainSubstring(`did not run with the settings of "` + settings + `", and does without:`))
	})
})
