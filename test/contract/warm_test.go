package contract

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const (
	heatWatches = `
- {group: heat.example.com, version: v1, kind: Hot, playbook: ping.yml, verbosity: 1}
- {group: heat.example.com, version: v1, kind: Warm, role: ping}
- {group: heat.example.com, version: v1, kind: Chill, playbook: plays/role.yml, warm: false}
`
	rolePlay  = `[{hosts: localhost, gather_facts: false, roles: [ping]}]`
	pingTasks = `[{ping: }]`
	pingPlay  = `[{hosts: localhost, gather_facts: false, tasks: ` + pingTasks + `}]`
)

const (
	// sightPlay writes down what ansible-playbook and a module find in their interpreters,
	// a setting, and the CR's text.
	sightPlay = `
- hosts: localhost
  gather_facts: false
  tasks:
  - mark:
    register: module
  - copy: {dest: "{{ lookup('env', 'KEEP') }}/seen", content: "{{ '' | mark }} {{ module.mark }} {{ lookup('config', 'DEFAULT_FORKS') }} {{ text }}"}
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

// environment makes a Python environment with what .venv has in it, and gives the place
// for more.
func environment(ctx context.Context, venv string) (site string) {
	GinkgoHelper()
	whole := filepath.Join(ground.Root, ".venv")
	out, err := exec.CommandContext(ctx, filepath.Join(whole, "bin", "python"), "-m", "venv", "--without-pip", venv).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	sites := map[string]string{}
	for _, dir := range []string{venv, whole} {
		found, err := filepath.Glob(filepath.Join(dir, "lib", "python3*", "site-packages"))
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(1))
		sites[dir] = found[0]
	}
	Expect(os.WriteFile(filepath.Join(sites[venv], "whole.pth"), []byte(sites[whole]+"\n"), 0o600)).To(Succeed())
	for _, name := range []string{"ansible-runner", "ansible-playbook"} {
		script, err := os.ReadFile(filepath.Join(whole, "bin", name))
		Expect(err).NotTo(HaveOccurred())
		_, code, _ := strings.Cut(string(script), "\n")
		Expect(os.WriteFile(filepath.Join(venv, "bin", name), []byte("#!"+filepath.Join(venv, "bin", "python")+"\n"+code), 0o700)).To(Succeed())
	}
	return sites[venv]
}

// heat is a site with kinds whose runs are warm, and one whose runs are not.
type heat struct{ *site.Site }

func newHeat(ctx context.Context, environ []string, args ...string) heat {
	GinkgoHelper()
	h := heat{ground.Site(ctx, map[string]string{"watches.yaml": heatWatches, "ping.yml": pingPlay, "plays/role.yml": rolePlay, "roles/ping/tasks/main.yml": pingTasks})}
	h.Options.Args = append(h.Options.Args, append([]string{"--max-verbosity=7"}, args...)...)
	h.Options.Env = slices.Concat(h.Options.Env, []string{"ANSIBLE_GATHERING=explicit"}, environ)
	h.Start(ctx, "Hot", "Warm", "Chill")
	return h
}

// counted is how many runs of a kind have ended in a mode.
func (h heat) counted(ctx context.Context, kind, mode string) int {
	GinkgoHelper()
	text, err := h.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`ansible_operator_runs_total\{GVK="heat.example.com/v1, Kind=` + kind + `",mode="` + mode + `"\} (\d+)`).FindStringSubmatch(text)
	Expect(found).To(HaveLen(2), "%s %s", kind, mode)
	n, err := strconv.Atoi(found[1])
	Expect(err).NotTo(HaveOccurred())
	return n
}

// runAgain runs the CR once more. No run of the CR is left when it returns: to count runs in
// the log would not tell this run from one for an earlier change.
func (h heat) runAgain(ctx context.Context, cr *unstructured.Unstructured) {
	GinkgoHelper()
	request := rand.Text()
	annotate(ctx, cr, steering+"reconcile-requested-at", strconv.Quote(request))
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		current := cr.DeepCopy()
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(cr), current)).To(Succeed())
		g.Expect(current.Object["status"]).To(HaveKeyWithValue("reconcileRequestedAt", request))
	}).Should(Succeed())
	Expect(h.Failed(cr)()).To(BeZero())
}

// runUntil runs the CR again and again until a run of its kind was in that mode.
func (h heat) runUntil(ctx context.Context, cr *unstructured.Unstructured, mode string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) int {
		h.runAgain(ctx, cr)
		return h.counted(ctx, cr.GetObjectKind().GroupVersionKind().Kind, mode)
	}).Should(BeNumerically(">", 0))
}

// servers lists the command lines of those for warm runs.
func (h heat) servers() []string {
	GinkgoHelper()
	found, err := harness.ProcessesOf(h.RunDir())
	Expect(err).NotTo(HaveOccurred())
	var lines []string
	for _, p := range found {
		if p.Server {
			lines = append(lines, p.CommandLine)
		}
	}
	return lines
}

var _ = Describe("warm runs", Ordered, ContinueOnFailure, func() {
	kind := func(name string) schema.GroupKind { return schema.GroupKind{Group: "heat.example.com", Kind: name} }
	BeforeAll(func(ctx context.Context) {
		ground.Define(ctx, harness.Definition(kind("Hot")), harness.Definition(kind("Warm")), harness.Definition(kind("Chill")))
	})

	row("§1 warm, §2 --warm, §9 watch_cold, §1 playbook", "one server has the runs of all watches, whatever the locale is, but of those with warm: false; a playbook elsewhere finds the project's roles", func(ctx context.Context) {
		h := newHeat(ctx, []string{"LC_ALL=xx_XX.UTF-8"}, "--warm=true")
		hot, warm, chill := harness.Custom(kind("Hot"), h.Namespace, "a", nil), harness.Custom(kind("Warm"), h.Namespace, "b", nil), harness.Custom(kind("Chill"), h.Namespace, "c", nil)
		warm.SetAnnotations(map[string]string{steering + "verbosity": "4"})
		h.Create(ctx, hot)
		for range 23 {
			h.runAgain(ctx, hot)
		}
		Expect(h.counted(ctx, "Hot", "warm")).To(BeNumerically(">=", 19), "at least 95 % of those after the first three")
		Expect(h.Metrics(ctx)).To(ContainSubstring(`ansible_operator_watch_cold{GVK="heat.example.com/v1, Kind=Hot"} 0`))
		Expect(h.Log()).To(MatchRegexp(`WARNING: runs use the locale C.UTF-8.*LC_ALL`))
		h.Create(ctx, warm, chill)
		h.runUntil(ctx, warm, "warm")
		h.runUntil(ctx, chill, "cold")
		Expect(h.counted(ctx, "Chill", "warm")).To(BeZero())
		Eventually(h.servers).Should(HaveLen(1), "a fork is like its server for a moment")
		Expect(h.Stop()).To(Succeed())
		Expect(h.servers()).To(BeEmpty())
		Expect(filepath.Glob(filepath.Join(h.RunDir(), ".warm*"))).To(BeEmpty())
	})

	row("§2 --warm", "false: no server, and all runs are cold", func(ctx context.Context) {
		h := newHeat(ctx, nil, "--warm=false")
		hot := harness.Custom(kind("Hot"), h.Namespace, "a", nil)
		h.Create(ctx, hot)
		h.runUntil(ctx, hot, "cold")
		Expect(h.counted(ctx, "Hot", "warm")).To(BeZero())
		Expect(h.servers()).To(BeEmpty())
		Expect(h.Metrics(ctx)).NotTo(ContainSubstring("ansible_operator_warm_fallbacks_total"))
	})

	row("§2 --warm, §3 untrusted", "runs see what was installed or set since, warm ones too; none begins while Ansible evaluates text of CRs; servers go with a manager that is killed", func(ctx context.Context) {
		h := heat{ground.Site(ctx, map[string]string{
			"watches.yaml": "- {group: heat.example.com, version: v1, kind: Hot, playbook: sight.yml}\n",
			"sight.yml":    sightPlay, "filter_plugins/mark.py": sightFilter, "library/mark.py": sightModule,
		})}
		venv, settings := filepath.Join(h.Dir, "venv"), filepath.Join(h.Dir, "ansible.cfg")
		site := environment(ctx, venv)
		write := func(path, text string) {
			GinkgoHelper()
			Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		}
		write(settings, "[defaults]\nforks = 3\n")
		h.Options.Args = append(h.Options.Args, "--warm=true")
		h.Options.Env = append(h.Options.Env, "VIRTUAL_ENV="+venv, "ANSIBLE_CONFIG="+settings, "KEEP="+h.Dir)
		h.Start(ctx, "Hot")
		hot := harness.Custom(kind("Hot"), h.Namespace, "a", map[string]any{"text": "{{ 6*7 }}"})
		h.Create(ctx, hot)
		seen := filepath.Join(h.Dir, "seen")
		// sees expects that runs see this soon, and a warm one too.
		sees := func(want string) {
			GinkgoHelper()
			Eventually(ctx, func(g Gomega) {
				before := h.counted(ctx, "Hot", "warm")
				h.runAgain(ctx, hot)
				g.Expect(os.ReadFile(seen)).To(BeEquivalentTo(want + " {{ 6*7 }}"))
				g.Expect(h.counted(ctx, "Hot", "warm")).To(BeNumerically(">", before))
			}).Should(Succeed())
		}
		// proved is how often the manager has told that what has changed is as good.
		proved := func() int {
			GinkgoHelper()
			text, err := h.Log()
			Expect(err).NotTo(HaveOccurred())
			return strings.Count(text, "the Python environment has changed, and passed the check")
		}
		sees("none none 3")
		Expect(proved()).To(BeZero(), "nothing has changed")
		By("installing something")
		write(filepath.Join(site, "sitecustomize.py"), "import sys\nsys.mark = 'new'\n")
		sees("new new 3")
		By("changing a setting")
		write(settings, "[defaults]\nforks = 4\n")
		sees("new new 4")
		By("installing a whole new environment, while no run is on")
		Expect(os.Rename(venv, venv+".old")).To(Succeed())
		site = environment(ctx, venv)
		sees("none none 4")
		before := proved()

		By("installing an Ansible that templates marked text, and fixing it")
		faulty, err := os.ReadFile(filepath.Join(ground.Root, "test", "safevars", "testdata", "faulty", "sitecustomize.py"))
		Expect(err).NotTo(HaveOccurred())
		write(filepath.Join(site, "sitecustomize.py"), string(faulty))
		Expect(os.Remove(seen)).To(Succeed())
		annotate(ctx, hot, steering+"reconcile-requested-at", `"faulty"`)
		Eventually(ctx, h.Condition(hot, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Reason", "RunnerCrashed"),
			HaveField("Message", And(ContainSubstring("environment has changed"), ContainSubstring("Ansible evaluated text")))))
		Expect(seen).NotTo(BeAnExistingFile(), "nothing was run")
		Expect(os.Remove(filepath.Join(site, "sitecustomize.py"))).To(Succeed())
		Eventually(ctx, h.Condition(hot, "Successful")).Should(HaveField("Status", "True"))
		Expect(seen).To(BeAnExistingFile())
		Expect(proved()).To(BeNumerically(">", before))

		By("killing the manager")
		Expect(syscall.Kill(h.PID(), syscall.SIGKILL)).To(Succeed())
		Eventually(h.Manager.Ended()).Should(BeClosed())
		Eventually(harness.ProcessesOf).WithArguments(h.RunDir()).Should(BeEmpty())
	})
})
