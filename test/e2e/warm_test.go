package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

const (
	// The play writes down what ansible-playbook and a module find in their interpreters,
	// and a setting.
	sightPlay = `
- hosts: localhost
  gather_facts: false
  tasks:
    - mark:
      register: module
    - copy: {dest: PLACE/seen, content: "{{ '' | mark }} {{ module.mark }} {{ lookup('config', 'DEFAULT_FORKS') }}"}
`
	sightFilter = `
import sys
class FilterModule:
    def filters(self):
        return {"mark": lambda _: getattr(sys, "mark", "none")}
`
	sightModule = `#!/usr/bin/python
import sys
from ansible.module_utils.basic import AnsibleModule
AnsibleModule({}, supports_check_mode=True).exit_json(mark=getattr(sys, "mark", "none"))
`
)

// sight is a manager whose runs are warm, and tell what they see.
type sight struct {
	*manager
	cr    *unstructured.Unstructured
	place string
	asked int
}

func newSight(ctx context.Context, venv, settings string) *sight {
	GinkgoHelper()
	s := &sight{place: GinkgoT().TempDir()}
	namespace := newNamespace(ctx)
	s.manager = startManager(managerOptions{
		namespace: namespace,
		dir: projectWith("- {group: test.ensign.io, version: v1, kind: Note, playbook: sight.yml}\n", map[string]string{
			"sight.yml": strings.ReplaceAll(sightPlay, "PLACE", s.place), "filter_plugins/mark.py": sightFilter, "library/mark.py": sightModule,
		}),
		args: []string{"--warm=true"},
		env:  []string{"VIRTUAL_ENV=" + venv, "ANSIBLE_CONFIG=" + settings},
	}).ready("Note")
	s.cr = custom("Note", namespace, "sight", nil)
	Expect(k8s.Create(ctx, s.cr)).To(Succeed())
	Eventually(s.succeeded).Should(BeNumerically(">", 0))
	return s
}

// succeeded counts the runs.
func (s *sight) succeeded() int { return strings.Count(s.log(), "run succeeded") }

// sees runs once more, and gives what that run saw.
func (s *sight) sees(ctx context.Context) string {
	GinkgoHelper()
	before := s.succeeded()
	s.asked++
	again := fmt.Appendf(nil, `{"metadata": {"annotations": {"ansible.sdk.operatorframework.io/reconcile-requested-at": "%d"}}}`, s.asked)
	Expect(k8s.Patch(ctx, s.cr, client.RawPatch(types.MergePatchType, again))).To(Succeed())
	Eventually(s.succeeded).Should(BeNumerically(">", before))
	seen, err := os.ReadFile(filepath.Join(s.place, "seen"))
	Expect(err).NotTo(HaveOccurred())
	return string(seen)
}

// warm counts the runs that were.
func (s *sight) warm(ctx context.Context) int {
	GinkgoHelper()
	text, err := s.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`ansible_operator_runs_total\{GVK="test.ensign.io/v1, Kind=Note",mode="warm"\} (\d+)`).FindStringSubmatch(text)
	Expect(found).To(HaveLen(2))
	n, err := strconv.Atoi(found[1])
	Expect(err).NotTo(HaveOccurred())
	return n
}

// seesAlsoWarm expects that the next run, whatever its mode is, sees this, and a warm
// one too.
func (s *sight) seesAlsoWarm(ctx context.Context, want string) {
	GinkgoHelper()
	Expect(s.sees(ctx)).To(Equal(want))
	before := s.warm(ctx)
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		Expect(s.sees(ctx)).To(Equal(want))
		g.Expect(s.warm(ctx)).To(BeNumerically(">", before))
	}).Should(Succeed())
}

var _ = Describe("warm runs", func() {
	It("see what a cold one would, and leave nothing of a manager that is killed", func(ctx context.Context) {
		venv, site := environmentOfItsOwn(ctx)
		settings := filepath.Join(GinkgoT().TempDir(), "ansible.cfg")
		write := func(path, text string) {
			GinkgoHelper()
			Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		}
		write(settings, "[defaults]\nforks = 3\n")
		s := newSight(ctx, venv, settings)
		s.seesAlsoWarm(ctx, "none none 3")

		By("installing something")
		write(filepath.Join(site, "sitecustomize.py"), "import sys\nsys.mark = 'first'\n")
		s.seesAlsoWarm(ctx, "first first 3")

		By("editing what is installed")
		write(filepath.Join(site, "sitecustomize.py"), "import sys\nsys.mark = 'second'\n")
		s.seesAlsoWarm(ctx, "second second 3")

		By("changing a setting")
		write(settings, "[defaults]\nforks = 4\n")
		s.seesAlsoWarm(ctx, "second second 4")

		By("installing a whole new environment")
		Expect(os.Rename(venv, venv+".old")).To(Succeed())
		environmentAt(ctx, venv)
		s.seesAlsoWarm(ctx, "none none 4")

		By("killing the manager")
		Expect(syscall.Kill(s.PID(), syscall.SIGKILL)).To(Succeed())
		Eventually(s.Ended()).Should(BeClosed())
		Eventually(harness.ProcessesOf).WithArguments(s.RunDir()).Should(BeEmpty(), "servers too")
	})
})
