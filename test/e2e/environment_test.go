package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a Python environment that changes under a manager", func() {
	It("is tried again before the next run, which fails until it is safe", func(ctx context.Context) {
		venv, site := environmentOfItsOwn(ctx)
		namespace := newNamespace(ctx)
		dir := projectWith("- {group: test.ensign.io, version: v1, kind: Note, playbook: note.yml}\n", map[string]string{"note.yml": readProject("playbooks/note.yml")})
		m := startManager(managerOptions{dir: dir, namespace: namespace, env: []string{"VIRTUAL_ENV=" + venv}}).ready("Note")
		note := custom("Note", namespace, "note", map[string]any{"text": "{{ 6*7 }}"})
		Expect(k8s.Create(ctx, note)).To(Succeed())
		expectSuccess(ctx, note)
		Expect(m.log()).NotTo(ContainSubstring("Python environment"), "nothing has changed")

		By("installing an Ansible that templates marked text")
		faulty, err := os.ReadFile(filepath.Join(root, "test", "safevars", "testdata", "faulty", "sitecustomize.py"))
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(site, "sitecustomize.py"), faulty, 0o600)).To(Succeed())
		Expect(fetch(ctx, note)).To(Succeed())
		note.Object["spec"] = map[string]any{"text": "{{ 6*7 }} again"}
		Expect(k8s.Update(ctx, note)).To(Succeed())
		Eventually(ctx, conditionOf(note, "Failure")).Should(And(
			HaveField("Status", "True"), HaveField("Reason", "RunnerCrashed"),
			HaveField("Message", And(ContainSubstring("environment has changed"), ContainSubstring("Ansible evaluated text"))),
		))
		kept := configMap(namespace, "note-note")
		Expect(fetch(ctx, kept)).To(Succeed())
		Expect(kept.Data).To(HaveKeyWithValue("text", "{{ 6*7 }}"), "nothing was run with it")

		By("installing the right one")
		Expect(os.Remove(filepath.Join(site, "sitecustomize.py"))).To(Succeed())
		expectSuccess(ctx, note)
		Expect(fetch(ctx, kept)).To(Succeed())
		Expect(kept.Data).To(HaveKeyWithValue("text", "{{ 6*7 }} again"))
		m.logged("the Python environment has changed, and does")
	})
})

// environmentOfItsOwn makes a Python environment with what .venv has in it, and
// a place for more.
func environmentOfItsOwn(ctx context.Context) (venv, site string) {
	GinkgoHelper()
	venv = filepath.Join(GinkgoT().TempDir(), "venv")
	return venv, environmentAt(ctx, venv)
}

// environmentAt makes it there, and gives the place for more.
func environmentAt(ctx context.Context, venv string) (site string) {
	GinkgoHelper()
	whole := filepath.Join(root, ".venv")
	out, err := exec.CommandContext(ctx, filepath.Join(whole, "bin", "python"), "-m", "venv", "--without-pip", venv).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	sites := func(environment string) string {
		found, err := filepath.Glob(filepath.Join(environment, "lib", "python3*", "site-packages"))
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(1))
		return found[0]
	}
	site = sites(venv)
	Expect(os.WriteFile(filepath.Join(site, "whole.pth"), []byte(sites(whole)+"\n"), 0o600)).To(Succeed())
	for _, name := range []string{"ansible-runner", "ansible-playbook"} {
		script, err := os.ReadFile(filepath.Join(whole, "bin", name))
		Expect(err).NotTo(HaveOccurred())
		_, code, _ := strings.Cut(string(script), "\n")
		Expect(os.WriteFile(filepath.Join(venv, "bin", name), []byte("#!"+filepath.Join(venv, "bin", "python")+"\n"+code), 0o700)).To(Succeed())
	}
	return site
}
