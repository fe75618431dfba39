package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

func pageKind() schema.GroupKind { return schema.GroupKind{Group: "pages.example.com", Kind: "Page"} }

// pageTasks are those of its playbook.
const pageTasks = 5

var (
	recordLine = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\t(INFO|WARN|ERROR)\t`)
	ruleLine   = regexp.MustCompile(`^-+( Ansible (Task StdOut|Run) -+)?$`)
)

// recordsOf returns the lines of the log that are about a CR, and those of its blocks.
// Lines that are neither, or stand in the block of another, are a failure.
func recordsOf(log, object string) (records, blocks []string) {
	GinkgoHelper()
	inside := ""
	for line := range strings.Lines(log) {
		line = strings.TrimSuffix(line, "\n")
		owner, _, prefixed := strings.Cut(line, " | ")
		switch {
		case ruleLine.MatchString(line):
			inside = map[bool]string{true: "?"}[strings.Contains(line, "Ansible")]
		case inside != "":
			Expect(prefixed && (inside == "?" || inside == owner)).To(BeTrue(), "%q stands in a block of %s", line, inside)
			if inside = owner; owner == object {
				blocks = append(blocks, line)
			}
		default:
			Expect(line).To(MatchRegexp(recordLine.String()))
			if strings.Contains(line, fmt.Sprintf(`"cr": %q`, object)) {
				records = append(records, line)
			}
		}
	}
	return records, blocks
}

// eventsOf returns type and reason of the CR's Events, with how often each was told.
func eventsOf(cr client.Object) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		list := &corev1.EventList{}
		err := k8s.List(ctx, list, client.InNamespace(cr.GetNamespace()))
		var found []string
		for _, event := range list.Items {
			if event.InvolvedObject.UID == cr.GetUID() {
				count := max(event.Count, 1)
				if event.Series != nil {
					count = event.Series.Count
				}
				found = append(found, fmt.Sprintf("%s %s %d", event.Type, event.Reason, count))
			}
		}
		slices.Sort(found)
		return found, err
	}
}

var _ = Describe("the log", Ordered, ContinueOnFailure, func() {
	var (
		s     *site.Site
		pages []*unstructured.Unstructured // every fourth fails
		log   string
	)
	name := func(cr client.Object) string { return cr.GetNamespace() + "/" + cr.GetName() }
	fails := func(i int) bool { return i%4 == 3 }
	BeforeAll(func(ctx context.Context) {
		number := 4
		if withLong {
			number = 50
		}
		s = operator(ctx, "pages", pageKind().Group, pageKind().Kind)
		s.Start(ctx, "Page")
		for i := range number {
			pages = append(pages, harness.Custom(pageKind(), s.Namespace, fmt.Sprintf("page-%d", i), map[string]any{
				"words": map[bool]string{true: "many", false: "few"}[fails(i)],
			}))
			s.Create(ctx, pages[i])
		}
		for i, page := range pages {
			if fails(i) {
				Eventually(ctx, s.Failed(page)).Should(BeNumerically(">=", 2))
			} else {
				Eventually(ctx, s.Ended(page)).Should(Equal(1))
			}
		}
		var err error
		log, err = s.Log()
		Expect(err).NotTo(HaveOccurred())
	})

	row("§11 run lines", "one when a run starts, one a task, one at its end, at the default level", func() {
		records, blocks := recordsOf(log, name(pages[0]))
		Expect(blocks).To(BeEmpty())
		Expect(records).To(HaveLen(pageTasks + 2))
		Expect(records[0]).To(MatchRegexp(`INFO\trun\trun started\t.*"generation": 1, "reason": "created", "run": "[0-9a-f-]{36}"`))
		for i, task := range []string{"Say it", "Keep quiet", "Show a Secret", "Look at a file", "Count the words"} {
			Expect(records[i+1]).To(MatchRegexp(`INFO\trun\ttask\t.*"task": %q, "host": "localhost", "outcome": "(ok|skipped)", "seconds": [0-9.]+`, task))
		}
		Expect(records[pageTasks+1]).To(MatchRegexp(`INFO\trun\trun succeeded\t.*"outcome": "Succeeded", .*"seconds": [0-9.]+, "ok": 4, "changed": 0, "skipped": 1, "failures": 0.*"message": "Ansible-runner exited successfully"`))
	})
	row("§11 block", "a failed task prints its own, with the CR before each line, right behind its record", func() {
		for i, page := range pages {
			if !fails(i) {
				continue
			}
			_, blocks := recordsOf(log, name(page))
			Expect(blocks[:2]).To(Equal([]string{
				name(page) + " | TASK [Count the words] ****",
				name(page) + ` | fatal: [localhost]: FAILED! => {"changed": false, "msg": "too many words on ` + page.GetName() + `"}`,
			}))
			Expect(len(blocks)%2).To(BeZero(), "%q", blocks)
			Expect(log).To(MatchRegexp(`ERROR\trun\ttask failed\t.*"cr": %q, "watch": "[^"]*", "task": "Count the words".*\n(\S+\tINFO.*\n)*-+ Ansible Task StdOut -+\n%s \| `, name(page), name(page)))
		}
	})
	row("§11 many", "of many CRs at once, each failure's one line tells kind, CR, task, host and message", func() {
		for i, page := range pages {
			records, _ := recordsOf(log, name(page))
			var ends []string
			for _, record := range records {
				if strings.Contains(record, "\tERROR\trun\trun failed\t") {
					ends = append(ends, record)
				}
			}
			if !fails(i) {
				Expect(ends).To(BeEmpty())
				continue
			}
			Expect(ends).To(HaveEach(MatchRegexp(`"cr": %q, "watch": "pages.example.com/v1, Kind=Page", "outcome": "Failed", "reason": "Failed", `+
				`"message": "play \[Print\], task \[Count the words\] \(page.yml:\d+\), host \[localhost\]: too many words on %s"`, name(page), page.GetName())))
		}
	})
	row("§11 no_log, §11 Secrets, §11 invocation", "nothing of what is to be hidden stands in it", func() {
		Expect(log).NotTo(Or(ContainSubstring("quiet-canary"), ContainSubstring("data-canary"), ContainSubstring("string-canary"), ContainSubstring("argument-canary")))
	})

	row("§11 Events", "one when the outcome changes, however often it is repeated, and one at the end", func(ctx context.Context) {
		good, bad := pages[0], pages[3]
		Eventually(ctx, eventsOf(bad)).Should(Equal([]string{"Warning Failed 1"}))
		Eventually(ctx, eventsOf(good)).Should(Equal([]string{"Normal Succeeded 1"}))
		annotate(ctx, good, steering+"reconcile-requested-at", `"now"`)
		patch(ctx, bad, `{"spec": {"words": "few"}}`)
		Eventually(ctx, eventsOf(bad)).Should(Equal([]string{"Normal Succeeded 1", "Warning Failed 1"}))
		Eventually(s.Ended(good)).Should(Equal(2))
		Consistently(ctx, eventsOf(good), site.Calm).Should(Equal([]string{"Normal Succeeded 1"}), "nothing changed")
		Expect(k8s.Delete(ctx, good)).To(Succeed())
		Eventually(ctx, eventsOf(good)).Should(Equal([]string{"Normal Finalized 1", "Normal Succeeded 1"}))
	})
})

var _ = Describe("the log of everything, as JSON", Ordered, ContinueOnFailure, func() {
	const evil = "one\x1b[2J\r\x07two\u202e\n2026-01-01T00:00:00.000Z\tINFO\trun\trun succeeded\t{}"
	var (
		s       *site.Site
		log     string
		records []map[string]any
	)
	block := func(task string) string {
		GinkgoHelper()
		var found []string
		for _, record := range records {
			if text, ok := record["block"].(string); ok && record["task"] == task {
				found = append(found, text)
			}
		}
		Expect(found).To(HaveLen(1), task)
		return found[0]
	}
	BeforeAll(func(ctx context.Context) {
		s = operator(ctx, "pages", pageKind().Group, pageKind().Kind)
		s.Options.Args = append(s.Options.Args, "--log-format=json", "--ansible-log-events=everything", "--ansible-verbosity=4", "--health-probe-bind-address=127.0.0.1:0")
		s.Options.Env = append(s.Options.Env, "ANSIBLE_INJECT_INVOCATION=true") // As before ansible-core 2.21.
		s.Start(ctx)
		Expect(s.Logged(ctx, regexp.MustCompile(`"watching"`))).To(Succeed())
		s.Create(ctx, harness.Custom(pageKind(), s.Namespace, "one", map[string]any{"words": "few", "text": evil}))
		Expect(s.Logged(ctx, regexp.MustCompile(`"run succeeded"`))).To(Succeed())
		code, _ := probe(ctx, s, "readyz") // What a probe leaves in the log is JSON too.
		Expect(code).To(Equal(http.StatusOK))
		var err error
		log, err = s.Log()
		Expect(err).NotTo(HaveOccurred())
		records = nil
		for line := range strings.Lines(log) {
			record := map[string]any{}
			Expect(json.Unmarshal([]byte(line), &record)).To(Succeed(), line)
			records = append(records, record)
		}
	})

	row("§11 json, §11 Everything, §2 --log-format, §2 --ansible-log-events",
		"one object a line, and each task's block in a field", func() {
			for _, task := range []string{"Say it", "Show a Secret", "Look at a file"} {
				Expect(block(task)).To(HavePrefix("TASK [" + task + "] ****\nok: [localhost] => {"))
			}
			Expect(block("Count the words")).To(ContainSubstring("skipping: [localhost]"))
			Expect(records).To(ContainElement(And(HaveKeyWithValue("msg", "run started"), HaveKeyWithValue("cr", s.Namespace+"/one"), HaveKeyWithValue("level", "info"))))
		})
	row("§11 control characters", "are shown, not sent", func() {
		said := block("Say it")
		Expect(said).To(ContainSubstring("two"))
		for _, sent := range []string{"\x1b", "\r", "\x07", "\u202e", "\n2026-01-01"} {
			Expect(said).NotTo(ContainSubstring(sent))
		}
	})
	row("§11 invocation", "is taken out at every verbosity", func() {
		Expect(log).NotTo(Or(ContainSubstring("invocation"), ContainSubstring("argument-canary")))
	})
	row("§11 Secrets", "data and stringData are masked", func() {
		Expect(block("Show a Secret")).To(And(ContainSubstring(`"data"`), ContainSubstring(`"stringData"`)))
		Expect(log).NotTo(Or(ContainSubstring("data-canary"), ContainSubstring("string-canary")))
	})
	row("§11 no_log", "holds at every level", func() {
		Expect(log).NotTo(ContainSubstring("quiet-canary"))
	})
})

var _ = Describe("an account without a right to Events", func() {
	row("§11 Events", "that may not be written are one warning", func(ctx context.Context) {
		s := operator(ctx, "pages", pageKind().Group, pageKind().Kind)
		s.Script()
		s.Limit(ctx,
			rbacv1.PolicyRule{APIGroups: []string{"pages.example.com"}, Resources: []string{"*"}, Verbs: []string{"*"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"*"}},
		)
		s.Start(ctx, "Page")
		for _, name := range []string{"one", "two"} {
			page := harness.Custom(pageKind(), s.Namespace, name, map[string]any{"words": "few"})
			s.Create(ctx, page)
			Eventually(s.Ended(page)).Should(Equal(1))
			Expect(k8s.Delete(ctx, page)).To(Succeed())
			ground.Gone(ctx, page)
			Eventually(s.Log).Should(ContainSubstring("WARNING: Events are not written"))
		}
		text, err := s.Log()
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Count(text, "Events are not written")).To(Equal(1))
		Expect(text).NotTo(ContainSubstring("Server rejected event"))
	})
})
