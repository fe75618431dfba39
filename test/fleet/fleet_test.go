package fleet

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("people who operate resources", Ordered, ContinueOnFailure, func() {
	var d *desk
	BeforeAll(func(ctx context.Context) {
		d = newDesk(ctx)
		good, bad := d.greeting("good", "hello"), d.greeting("bad", "boo\x1b[2J\nto all")
		d.Create(ctx, good, bad)
		out, said := d.here(0, "status")
		Expect(out).To(MatchRegexp(`(?m)^KIND +NAMESPACE +NAME +READY +OUTCOME +REASON +GENERATION +LAST +NEXT +SLOWED +MESSAGE\n.* bad +- +Pending +- +0/1 +- +- +- +no run has been reported$`))
		Expect(said).To(ContainSubstring("note: the cluster does not serve fleet.ensign.io/v1, Kind=Absent: its CustomResourceDefinition is missing"))

		d.Start(ctx, greeting.Kind, note.Kind)
		d.Outcome(ctx, good)
		d.Outcome(ctx, bad)
	})

	It("see the result of each", func() {
		out, _ := d.here(1, "status")
		Expect(out).To(MatchRegexp(`(?m)^Greeting +\S+ +good +True +Successful +- +1 +\d+s +11[89]m +-\s*$`))
		Expect(out).To(MatchRegexp(`(?m)^Greeting: 2 ran 1\.4\.0 \([0-9a-f]{12}\)$`))
		// While it waits for its next try, or runs again.
		Expect(out).To(MatchRegexp(`(?m)^Greeting +\S+ +bad +False +(Failed|Running) +Failed +1 `))
		Expect(out).NotTo(ContainSubstring("\x1b"))
		Eventually(func() string {
			out, _ := d.here(1, "status", "greeting/bad")
			return out
		}).Should(MatchRegexp(` bad +False +Failed +Failed +1 +\d+\w+ +(due|\d+\w+) +- `))
		out, _ = d.here(0, "status", "greeting/good", "-o", "wide")
		Expect(out).To(MatchRegexp(`PERIOD +VERSION +MESSAGE\n.* 2h0m0s +1\.4\.0 \([0-9a-f]{12}\)`))
		Expect(out).NotTo(ContainSubstring(" bad "))
	})
	It("get it for programs", func() {
		out, _ := d.here(0, "status", "greetings/good", "-o", "json")
		var list struct {
			Items    []map[string]any `json:"items"`
			Versions []map[string]any `json:"versions"`
		}
		Expect(json.Unmarshal([]byte(out), &list)).To(Succeed())
		Expect(list.Items).To(ConsistOf(And(HaveKeyWithValue("outcome", "Successful"), HaveKeyWithValue("failed", false), HaveKey("lastRun"), HaveKey("nextRun"), HaveKeyWithValue("version", "1.4.0"), HaveKey("digest"))))
		Expect(list.Versions).To(ConsistOf(And(HaveKeyWithValue("kind", "Greeting"), HaveKeyWithValue("resources", 1.0))))
		out, _ = d.here(0, "status", "greetings/good", "-o", "yaml")
		Expect(out).To(ContainSubstring("outcome: Successful\n"))
	})
	It("run content now, and learn how it ended", func() {
		before, err := d.Runs(d.greeting("good", ""))()
		Expect(err).NotTo(HaveOccurred())
		out, _ := d.here(0, "reconcile", "greeting/good", "--wait")
		Expect(out).To(HaveSuffix("/good: succeeded\n"))
		Expect(d.Ended(d.greeting("good", ""))()).To(Equal(before + 1))
		_, said := d.here(1, "reconcile", "greeting/bad", "greeting/good", "--wait")
		Expect(said).To(ContainSubstring("/bad: failed (Failed): "))
		Expect(said).To(And(ContainSubstring("nobody says boo\\x1b[2J\n    to all"), Not(ContainSubstring("\x1b"))))
		Expect(d.Ended(d.greeting("good", ""))()).To(Equal(before + 2))
	})
	It("suspend and resume", func(ctx context.Context) {
		_, said := d.here(1, "reconcile", "greeting/bad", "--wait")
		Expect(said).To(ContainSubstring("nobody says"))
		out, _ := d.here(0, "suspend", "--all", "--wait")
		Expect(out).To(And(ContainSubstring("/good: is paused\n"), ContainSubstring("/bad: is paused\n")))
		out, _ = d.here(1, "status")
		Expect(out).To(And(MatchRegexp(` good +True +Paused +- `), MatchRegexp(` bad +False +Paused +Failed `)))
		_, said = d.here(2, "reconcile", "greeting/good")
		Expect(said).To(ContainSubstring("it is paused: resume it"))

		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"word":"hi"}}`))
		Expect(ground.Client.Patch(ctx, d.greeting("bad", ""), patch)).To(Succeed())
		out, _ = d.here(1, "status", "greeting/bad")
		Expect(out).To(ContainSubstring(" 1/2 "))
		out, _ = d.here(0, "resume", "greeting/bad", "--wait")
		Expect(out).To(HaveSuffix("/bad: succeeded\n"))
		out, _ = d.here(0, "resume", "greeting/bad")
		Expect(out).To(ContainSubstring("it is not paused"))
		out, _ = d.here(0, "resume", "greeting/good")
		Expect(out).To(ContainSubstring("is not paused any more"))
		Eventually(func() string {
			out, _ := d.here(0, "status")
			return out
		}).Should(And(MatchRegexp(` good +True +Successful +- +1 `), MatchRegexp(` bad +True +Successful +- +2 `)))
	})
	It("suspend a resource at once after it was resumed, and then nothing begins", func() {
		for range 3 {
			d.here(0, "suspend", "greeting/good", "--wait")
			d.here(0, "resume", "greeting/good")
			d.here(0, "suspend", "greeting/good", "--wait")
			before, err := d.Runs(d.greeting("good", ""))()
			Expect(err).NotTo(HaveOccurred())
			Consistently(d.Runs(d.greeting("good", "")), "1s").Should(Equal(before))
		}
		d.here(0, "resume", "greeting/good", "--wait")
	})
	It("cancel a run that hangs, and then nothing runs until somebody asks", func(ctx context.Context) {
		hangs := d.greeting("hangs", "hang")
		ground.Create(ctx, hangs)
		Eventually(func() string {
			out, _ := d.here(0, "status", "greeting/hangs")
			return out
		}).Should(ContainSubstring("Running"))
		out, _ := d.here(0, "cancel", "greeting/hangs", "--wait")
		Expect(out).To(HaveSuffix("/hangs: its run has ended\n"))
		out, _ = d.here(0, "status", "greeting/hangs")
		Expect(out).To(MatchRegexp(` hangs +False +Canceled `))
		out, _ = d.here(0, "cancel", "greeting/hangs")
		Expect(out).To(ContainSubstring("nothing to do: its status shows no run"))
		before, err := d.Runs(hangs)()
		Expect(err).NotTo(HaveOccurred())
		Consistently(d.Runs(hangs), "2s").Should(Equal(before))
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"word":"hi"}}`))
		Expect(ground.Client.Patch(ctx, hangs, patch)).To(Succeed())
		out, _ = d.here(0, "reconcile", "greeting/hangs", "--wait")
		Expect(out).To(HaveSuffix("/hangs: succeeded\n"))
		ground.Delete(ctx, hangs)
		ground.Gone(ctx, hangs)
	})
	It("take kinds that watches.yaml does not have, as a program may watch them in Go", func() {
		out, _ := d.here(0, "status", "configmap/kube-root-ca.crt")
		Expect(out).To(ContainSubstring("kube-root-ca.crt"))
		out, _ = d.here(0, "status", "--group", group)
		Expect(out).To(ContainSubstring("Greeting"))
	})
	It("read the error of a command", func(ctx context.Context) {
		for says, args := range map[string][]string{
			`kind "gadget" is not watched: watches.yaml has Greeting, Absent, Note`: {"reconcile", "gadget/x"},
			"/x: there is no such Greeting in namespace":                            {"suspend", "greeting/x"},
			`there is no Greeting "x" in namespace`:                                 {"status", "greeting/x"},
			"does not serve fleet.ensign.io/v1, Kind=Absent":                        {"resume", "absent/x"},
			"names a kind: name resources, KIND/NAME, or give --all":                {"resume", "greeting"},
		} {
			_, said := d.here(2, args...)
			Expect(said).To(ContainSubstring(says))
		}
		limited := &desk{Site: d.Site, dir: d.dir}
		before := d.Options
		limited.Limit(ctx, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"greetings"}, Verbs: []string{"get"}})
		limited.kubeconfig, d.Options = d.Options.Kubeconfig, before
		_, said := limited.here(2, "suspend", "greeting/good")
		Expect(said).To(ContainSubstring("/good: it is not allowed: "))
		_, said = limited.here(2, "status")
		Expect(said).To(ContainSubstring(`cannot list resource "greetings"`))
		_, said = d.here(1, "suspend", "greeting/good", "--wait", "--timeout=1ns")
		Expect(said).To(ContainSubstring("/good: no pause is shown within --timeout"))
		d.here(0, "resume", "greeting/good", "--wait")
	})
	It("need no watches.yaml", func() {
		elsewhere := &desk{Site: d.Site, dir: d.Dir, kubeconfig: d.kubeconfig}
		for _, args := range [][]string{{"greetings"}, {"Greeting"}, {"greetings.v1.fleet.ensign.io"}, {"--group", group}} {
			out, _ := elsewhere.here(0, append([]string{"status"}, args...)...)
			Expect(out).To(MatchRegexp(`(?m) good +True +Successful +- +1 +\d+\w+ +- +-$`), "%v", args)
		}
		for _, kubeconfig := range []string{d.kubeconfig, filepath.Join(d.Dir, "none")} {
			_, said := (&desk{Site: d.Site, dir: d.Dir, kubeconfig: kubeconfig}).here(2, "status")
			Expect(said).To(And(ContainSubstring("there is no watches.yaml here"), ContainSubstring("give their API group by --group")))
		}
		out, _ := elsewhere.here(0, "reconcile", "greeting/good", "--wait")
		Expect(out).To(HaveSuffix("/good: succeeded\n"))
	})
	It("control releases of charts, also one that needs no change", func(ctx context.Context) {
		n := harness.Custom(note, d.Namespace, "n", map[string]any{"text": "hello"})
		d.Create(ctx, n)
		d.Outcome(ctx, n)
		for range 2 {
			out, _ := d.here(0, "reconcile", "note/n", "--wait")
			Expect(out).To(HaveSuffix("/n: succeeded\n"))
		}
		Expect(d.Runs(n)()).To(Equal(3), "one for each request, which renders the chart again")
		elsewhere := &desk{Site: d.Site, dir: d.Dir, kubeconfig: d.kubeconfig}
		elsewhere.here(0, "suspend", "notes/n", "--wait")
		out, _ := d.here(0, "status", "note")
		Expect(out).To(MatchRegexp(` n +True +Paused +- +1 `))
		Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(n), n)).To(Succeed())
		Expect(n.GetAnnotations()).To(And(HaveKeyWithValue("helm.sdk.operatorframework.io/paused", "true"), HaveLen(2)))
		elsewhere.here(0, "resume", "notes/n", "--wait")
		out, _ = d.here(0, "status", "note", "-o", "wide")
		Expect(out).To(MatchRegexp(` n +True +Successful +- +1 +\d+\w+ +- +- +\S+ +note-0\.1\.0 \([0-9a-f]{12}\)`))
	})
	It("watch the runs", func(ctx context.Context) {
		out := d.start("status", "--watch")
		Eventually(out).Should(gbytes.Say(` good `))
		d.here(0, "reconcile", "greeting/good", "--wait")
		Eventually(out).Should(gbytes.Say(`\n\S+ +\S+ +good +True +Running .*\n\S+ +\S+ +good +True +Successful `))
		late := d.greeting("late", "hello")
		d.Create(ctx, late)
		Eventually(out).Should(gbytes.Say(` late +True +Successful `))
		Expect(ground.Client.Delete(ctx, late)).To(Succeed())
		Eventually(out).Should(gbytes.Say(` late +- +Deleted `))
	})
	It("read one resource's lines of a log", func() {
		out, _ := d.run(0, "logs", "greeting/bad", "--file", d.LogFile())
		Expect(out).To(And(ContainSubstring("run started"), ContainSubstring("\n"+d.Namespace+"/bad | TASK [greeting : Require a friendly word] ****\n"), ContainSubstring("run failed")))
		Expect(out).NotTo(ContainSubstring(d.Namespace + "/good"))
		out, _ = d.here(0, "logs", "greeting/good", "--file", d.LogFile())
		Expect(out).To(And(ContainSubstring("run succeeded"), ContainSubstring("resource paused by its annotation")))
		Expect(out).NotTo(Or(ContainSubstring(d.Namespace+"/bad"), ContainSubstring("starting"), ContainSubstring("watching")))
	})
	It("read it from the pods of managers, and follow one that comes later", func(ctx context.Context) {
		kubelet := ground.Kubelet(ctx)
		manager := func(name string) {
			kubelet.Pod(ctx, d.Namespace, name)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: name}}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app.kubernetes.io/component":"manager"}}}`))
			Expect(ground.Client.Patch(ctx, pod, patch)).To(Succeed())
		}
		_, said := d.here(2, "logs", "greeting/good")
		Expect(said).To(ContainSubstring("no pod of a manager was found"))
		line := func(name string) string {
			return "2026-11-24T11:33:58.691Z\tINFO\trun\ttask\t{\"cr\": \"" + d.Namespace + "/" + name + "\", \"watch\": \"fleet.ensign.io/v1, Kind=Greeting\"}"
		}
		manager("first")
		kubelet.Write(line("bad"))
		kubelet.Write(line("good"))
		out := d.start("logs", "greeting/good", "--follow", "--manager-namespace", d.Namespace)
		shown := func() int { return strings.Count(string(out.Contents()), "/good") }
		Eventually(shown).Should(Equal(1))
		manager("second") // The kubelet gives it the same log.
		Eventually(shown).Should(Equal(2))
		kubelet.Write(line("bad"))
		kubelet.Write(line("good"))
		Eventually(shown).Should(Equal(4))
		Expect(string(out.Contents())).NotTo(ContainSubstring("/bad"))
		read, _ := d.here(0, "logs", "greeting/bad")
		Expect(strings.Count(read, "/bad")).To(Equal(4))

		By("reading the log of a container before its restart")
		_, said = d.here(2, "logs", "greeting/good", "--previous")
		Expect(said).To(ContainSubstring("no container of the manager has restarted"))
		kubelet.WritePrevious(line("bad"))
		kubelet.WritePrevious(strings.Replace(line("good"), "\ttask\t", "\tbefore\t", 1))
		again := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "first"}}
		patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/status/containerStatuses/0/lastState","value":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]`))
		Expect(ground.Client.Status().Patch(ctx, again, patch)).To(Succeed())
		read, _ = d.here(0, "logs", "greeting/good", "--previous")
		Expect(read).To(And(ContainSubstring("\tbefore\t"), Not(ContainSubstring("/bad"))))
		Expect(strings.Count(read, "\n")).To(Equal(1), "the other pod has none")
	})
	It("complete kinds and names", func() {
		complete := func(args ...string) string {
			GinkgoHelper()
			out, _ := d.run(0, append([]string{"__complete"}, args...)...)
			return out
		}
		Expect(complete("logs", "gre")).To(Equal("greeting/\n:6\n"))
		Expect(complete("logs", "greeting/good", "--prev")).To(HavePrefix("--previous\t"))
		Expect(complete("run-once", "-n", d.Namespace, "greeting/g")).To(Equal("greeting/good\n:4\n"))
		Expect(complete("status", "greeting/")).To(ContainSubstring("greeting/bad\ngreeting/good\n"))
		away := &desk{Site: d.Site, dir: d.dir, kubeconfig: filepath.Join(d.Dir, "none")}
		out, said := away.run(0, "__complete", "suspend", "greeting/")
		Expect(out).To(Equal(":4\n"))
		Expect(said).To(Equal("Completion ended with directive: ShellCompDirectiveNoFileComp\n"))
	})
})
