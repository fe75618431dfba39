//go:build long

package e2e

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// What waits long: until a kind is looked for again, a lease is free, or a failure may be
// repeated.
var _ = Describe("the manager's process, after a while", func() {
	It("serves the other kinds while one is missing, and that one when it comes", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		m := startManager(managerOptions{namespace: namespace}).ready("Note")
		m.logged(`not served.*Kind=Late`)
		note := custom("Note", namespace, "meanwhile", map[string]any{})
		Expect(k8s.Create(ctx, note)).To(Succeed())
		expectSuccess(ctx, note)
		Expect(get(ctx, "http://"+m.health+"/readyz", "")).To(Equal(http.StatusOK))
		late := definition("Late")
		Expect(k8s.Create(ctx, late)).To(Succeed())
		m.ready("Late")
		cr := custom("Late", namespace, "at-last", map[string]any{})
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		expectSuccess(ctx, cr)
		By("taking the kind away again")
		Expect(k8s.Delete(ctx, late)).To(Succeed())
		m.logged(`no longer served`)
		note.SetResourceVersion("")
		note.SetName("afterwards")
		Expect(k8s.Create(ctx, note)).To(Succeed())
		expectSuccess(ctx, note)
	})

	It("lets only the leader work, and its successor go on", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		dir := projectWith("- {group: test.ensign.io, version: v1, kind: Note, playbook: note.yml}\n", map[string]string{"note.yml": readProject("playbooks/note.yml")})
		elect := []string{"--leader-elect", "--leader-election-id=e2e", "--leader-election-namespace=" + namespace}
		leader := startManager(managerOptions{namespace: namespace, dir: dir, args: elect}).ready("Note")
		standby := startManager(managerOptions{namespace: namespace, dir: dir, args: elect})
		Eventually(func() (int, error) { return get(ctx, "http://"+standby.health+"/readyz", "") }).Should(Equal(http.StatusOK), "a standby replica is ready")
		note := custom("Note", namespace, "led", map[string]any{})
		Expect(k8s.Create(ctx, note)).To(Succeed())
		expectSuccess(ctx, note)
		Expect(leader.startsOf(namespace + "/led")).To(Equal(1))
		Expect(standby.startsOf(namespace + "/led")).To(BeZero())
		leader.stop()
		standby.ready("Note")
		note.SetResourceVersion("")
		note.SetName("inherited")
		Expect(k8s.Create(ctx, note)).To(Succeed())
		expectSuccess(ctx, note)
		Expect(standby.startsOf(namespace + "/inherited")).To(Equal(1))
	})

	It("writes one JSON object a line when it is asked to", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		m := startManager(managerOptions{namespace: namespace, args: []string{"--log-format=json"}}).ready("Probe")
		cr := custom("Probe", namespace, "json", map[string]any{"actionName": "fail", "message": "in json"})
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		expectFailure(ctx, cr, "Failed")
		probed, err := get(ctx, "http://"+m.health+"/readyz", "")
		Expect(err).NotTo(HaveOccurred())
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		expectGone(ctx, cr)
		m.stop()
		expectJSONLines(m.log())
		Expect(probed).To(Equal(http.StatusOK), "what a probe leaves in the log is JSON too")
		Expect(m.log()).To(ContainSubstring("the probe failed: in json"))
	})
})
