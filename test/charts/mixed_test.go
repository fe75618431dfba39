package charts

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/collector"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// gated is a role whose runs last until a file is there.
const gated = `- name: Wait for the gate
  ansible.builtin.wait_for:
    path: "{{ gate }}"
    sleep: 1
- name: Greet
  kubernetes.core.k8s:
    definition:
      apiVersion: v1
      kind: ConfigMap
      metadata:
        name: "{{ ansible_operator_meta.name }}-greeting"
        namespace: "{{ ansible_operator_meta.namespace }}"
      data: {a: b}
`

// gatedHook is a hook whose runs last until its pod has succeeded: no scheduler takes it.
const gatedHook = `apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}
  annotations: {"helm.sh/hook": pre-install}
spec:
  schedulerName: nobody
  restartPolicy: Never
  containers: [{name: a, image: none}]
`

var _ = Describe("an operator with a role and a chart", Label("long"), func() {
	var s *site.Site

	// sum adds the values of a metric, of the watch of a kind or of all.
	sum := func(metric, kind string) func(context.Context) (int, error) {
		line := regexp.MustCompile(`(?m)^` + metric + `\{[^}]*Kind=` + kind + `"[^}]*\} (\d+)$`)
		return func(ctx context.Context) (total int, err error) {
			text, err := s.Metrics(ctx)
			for _, found := range line.FindAllStringSubmatch(text, -1) {
				value, err := strconv.Atoi(found[1])
				if err != nil {
					return 0, err
				}
				total += value
			}
			return total, err
		}
	}
	live := func(kind string) func(context.Context) (int, error) { return sum("ansible_operator_live_runs", kind) }
	waiting := func(kind string) func(context.Context) (int, error) {
		return sum("ansible_operator_waiting_runs", kind)
	}
	// both returns what a metric says of both kinds.
	both := func(of func(string) func(context.Context) (int, error)) func(context.Context) ([]int, error) {
		return func(ctx context.Context) ([]int, error) {
			greetings, err := of(greeting.Kind)(ctx)
			if err != nil {
				return nil, err
			}
			hellos, err := of(hello.Kind)(ctx)
			return []int{greetings, hellos}, err
		}
	}
	// running returns the one of the CRs that has a live run.
	running := func(ctx context.Context, crs []*unstructured.Unstructured) (found *unstructured.Unstructured) {
		GinkgoHelper()
		Eventually(ctx, func(ctx context.Context) (string, error) {
			for _, found = range crs {
				if condition, err := s.Condition(found, "Running")(ctx); err != nil || condition.Reason == "Running" {
					return condition.Reason, err
				}
			}
			return "", nil
		}).Should(Equal("Running"))
		return found
	}
	// release ends the live run of a CR.
	release := func(ctx context.Context, cr *unstructured.Unstructured) error {
		if cr.GetKind() == greeting.Kind {
			return os.WriteFile(filepath.Join(s.Dir, cr.GetName()), nil, 0o600)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: cr.GetName()}}
		return k8s.Status().Patch(ctx, pod, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Succeeded"}}`)))
	}
	custom := func(ctx context.Context, kind string, number int) *unstructured.Unstructured {
		GinkgoHelper()
		name := fmt.Sprintf("%s-%d", map[string]string{greeting.Kind: "greeting", hello.Kind: "hello"}[kind], number)
		group := greeting
		group.Kind = kind
		cr := harness.Custom(group, s.Namespace, name, map[string]any{"gate": filepath.Join(s.Dir, name)})
		s.Create(ctx, cr)
		return cr
	}

	It("has one limit for both, fairly, and one stop", func(ctx context.Context) {
		s = charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: b"), "hook.yaml": gatedHook}, "")
		s.Write(map[string]string{
			"watches.yaml":               "- {group: demo.example.com, version: v1, kind: Greeting, role: gated}\n- {group: demo.example.com, version: v1, kind: Hello, chart: chart}\n",
			"roles/gated/tasks/main.yml": gated,
		})
		s.Options.Args = append(s.Options.Args, "--max-concurrent-runs=2")
		s.Start(ctx, greeting.Kind, hello.Kind)

		By("keeping a slot free for the kind that has no run, although the other waits")
		greetings := []*unstructured.Unstructured{custom(ctx, greeting.Kind, 0), custom(ctx, greeting.Kind, 1), custom(ctx, greeting.Kind, 2)}
		Eventually(ctx, live(greeting.Kind)).Should(Equal(1))
		Eventually(ctx, waiting(greeting.Kind)).Should(Equal(2))

		By("giving it to that kind at once, and no more than two to both")
		hellos := []*unstructured.Unstructured{custom(ctx, hello.Kind, 0), custom(ctx, hello.Kind, 1)}
		Eventually(ctx, live(hello.Kind)).Should(Equal(1))
		Eventually(ctx, waiting(hello.Kind)).Should(Equal(1))
		Consistently(ctx, both(live), site.Calm).Should(Equal([]int{1, 1}))

		By("leaving the slot of a kind to the next of that kind")
		ended := running(ctx, greetings)
		Expect(release(ctx, ended)).To(Succeed())
		Expect(s.Outcome(ctx, ended)).To(HaveField("Reason", "Successful"))
		Eventually(ctx, both(waiting)).Should(Equal([]int{1, 1}))
		Eventually(ctx, both(live)).Should(Equal([]int{1, 1}))

		By("counting runs of both")
		ended = running(ctx, hellos)
		Eventually(ctx, func(ctx context.Context) error { return release(ctx, ended) }).Should(Succeed())
		Expect(s.Outcome(ctx, ended)).To(HaveField("Reason", "Successful"))
		for _, kind := range []string{greeting.Kind, hello.Kind} {
			Eventually(ctx, sum("ansible_operator_runs_total", kind)).Should(Equal(1), kind)
		}

		By("ending runs of both at the stop")
		Eventually(ctx, both(live)).Should(Equal([]int{1, 1}))
		_, _ = running(ctx, greetings), running(ctx, hellos) // Their statuses say so, too.
		Expect(s.Stop()).To(Succeed())
		Expect(s.Processes()).To(BeEmpty())
		canceled := map[string]int{}
		for _, cr := range append(greetings, hellos...) {
			if condition, err := s.Condition(cr, "Running")(ctx); condition.Reason == "Canceled" {
				Expect(err).NotTo(HaveOccurred())
				canceled[cr.GetKind()]++
			}
		}
		Expect(canceled).To(Equal(map[string]int{greeting.Kind: 1, hello.Kind: 1}))

		By("finishing them all with the next manager")
		s.Start(ctx, greeting.Kind, hello.Kind)
		all := append(greetings, hellos...)
		Eventually(ctx, func(ctx context.Context) (done int, err error) {
			for _, cr := range all {
				condition, err := s.Condition(cr, "Successful")(ctx)
				switch {
				case err != nil:
					return 0, err
				case condition.Status == "True":
					done++
				default:
					_ = release(ctx, cr) // Its run may not be live yet.
				}
			}
			return done, nil
		}).Should(Equal(len(all)))
	})
})

var _ = Describe("the traces of an operator with a role and a chart", Label("long"), func() {
	It("have the runs, their tasks and their requests, and their IDs are in the log and the Events", func(ctx context.Context) {
		to := collector.Start()
		DeferCleanup(to.Close)
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: b")}, "")
		_, ungated, _ := strings.Cut(gated, "- name: Greet")
		s.Write(map[string]string{
			"watches.yaml": "- {group: demo.example.com, version: v1, kind: Greeting, role: greet}\n- {group: demo.example.com, version: v1, kind: Hello, chart: chart}\n",
			"roles/greet/tasks/main.yml": "- name: Greet" + ungated + `- name: Judge
  ansible.builtin.assert: {that: word != 'canary-bad', fail_msg: "{{ word }}"}
`,
		})
		s.Options.Env = append(s.Options.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+to.URL, "OTEL_SERVICE_NAME=greetings", "OTEL_BSP_SCHEDULE_DELAY=100")
		s.Start(ctx, greeting.Kind, hello.Kind)
		good := harness.Custom(greeting, s.Namespace, "good", map[string]any{"word": "canary"})
		bad := harness.Custom(greeting, s.Namespace, "bad", map[string]any{"word": "canary-bad"})
		release := harness.Custom(hello, s.Namespace, "release", nil)
		s.Create(ctx, good, bad, release)
		Expect(s.Outcome(ctx, good)).To(HaveField("Reason", "Successful"))
		Expect(s.Outcome(ctx, bad)).To(HaveField("Reason", "Failed"))
		Expect(s.Outcome(ctx, release)).To(HaveField("Reason", "Successful"))

		// spansOf returns the spans of the trace that the Event of a CR names, those of tasks and requests by their names.
		spansOf := func(cr *unstructured.Unstructured) (run *tracepb.Span, below map[string]*tracepb.Span) {
			GinkgoHelper()
			var id string
			Eventually(ctx, func(ctx context.Context) (string, error) {
				list := &eventsv1.EventList{}
				err := k8s.List(ctx, list, client.InNamespace(s.Namespace))
				for _, event := range list.Items {
					if found := regexp.MustCompile(`\(trace ([0-9a-f]{32})\)$`).FindStringSubmatch(event.Note); found != nil && event.Regarding.Name == cr.GetName() {
						id = found[1]
					}
				}
				return id, err
			}).ShouldNot(BeEmpty())
			Expect(s.Log()).To(MatchRegexp(`run started.*"cr": "%s/%s".*"trace_id": "%s"`, s.Namespace, cr.GetName(), id))
			Eventually(ctx, func() *tracepb.Span {
				run, below = nil, map[string]*tracepb.Span{}
				for _, span := range to.Spans() {
					switch {
					case hex.EncodeToString(span.GetTraceId()) != id:
					case len(span.GetParentSpanId()) == 0:
						run = span
					default:
						below[span.GetName()] = span
					}
				}
				return run
			}).ShouldNot(BeNil())
			for name, span := range below {
				Expect(span.GetParentSpanId()).To(Equal(run.GetSpanId()), name)
			}
			return run, below
		}

		By("having a task's span within that of the run, as long as the task")
		run, below := spansOf(good)
		Expect(run.GetName()).To(Equal("run Greeting"))
		Expect(collector.Attributes(run.GetAttributes())).To(And(HaveKeyWithValue("k8s.namespace.name", s.Namespace), HaveKeyWithValue("ensign.outcome", "Succeeded"), HaveKeyWithValue("ensign.ok", BeNumerically(">=", 2))))
		task := below["greet : Greet"]
		Expect(collector.Attributes(task.GetAttributes())).To(HaveKeyWithValue("ensign.module", "kubernetes.core.k8s"))
		Expect(task.GetStartTimeUnixNano()).To(BeNumerically(">", run.GetStartTimeUnixNano()))
		Expect(task.GetEndTimeUnixNano()).To(And(BeNumerically(">", task.GetStartTimeUnixNano()), BeNumerically("<", run.GetEndTimeUnixNano())))

		By("having the requests of the run")
		created := below["create configmaps"]
		Expect(collector.Attributes(created.GetAttributes())).To(And(HaveKeyWithValue("ensign.resource", "configmaps"), HaveKeyWithValue("http.response.status_code", BeNumerically("==", 201))))

		By("saying why a run failed, and nothing that a CR or a result has")
		run, below = spansOf(bad)
		Expect(run.GetStatus()).To(And(HaveField("Code", tracepb.Status_STATUS_CODE_ERROR), HaveField("Message", "Failed")))
		Expect(below["greet : Judge"].GetStatus()).To(HaveField("Code", tracepb.Status_STATUS_CODE_ERROR))
		Expect(fmt.Sprint(to.Spans())).NotTo(ContainSubstring("canary"))

		By("having runs of charts, with their requests")
		run, below = spansOf(release)
		Expect(run.GetName()).To(Equal("run Hello"))
		Expect(below).To(HaveKey("create secrets"))
		Expect(to.Resource()).To(HaveKeyWithValue("service.name", "greetings"))

		By("sending the rest at the stop")
		s.Options.Env = append(s.Options.Env, "OTEL_BSP_SCHEDULE_DELAY=600000")
		Expect(s.Stop()).To(Succeed())
		s.Start(ctx, greeting.Kind, hello.Kind)
		last := harness.Custom(greeting, s.Namespace, "last", map[string]any{"word": "x"})
		s.Create(ctx, last)
		Expect(s.Outcome(ctx, last)).To(HaveField("Reason", "Successful"))
		Expect(s.Stop()).To(Succeed())
		run, _ = spansOf(last)
		Expect(collector.Attributes(run.GetAttributes())).To(HaveKeyWithValue("ensign.cr", s.Namespace+"/last"))
	})
})
