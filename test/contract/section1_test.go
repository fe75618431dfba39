package contract

import (
	"context"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("watches and settings", Ordered, ContinueOnFailure, func() {
	w := &settings{}
	BeforeAll(w.begin)
	watchRows(w)
	environmentRows(w)
	annotationRows(w)
	selectorRows(w)
	endingRows(w)
})

func watchRows(w *settings) {
	row("§1 group, §1 version, §1 kind, §1 two groups", "one kind and version in two groups are two watches", func() {
		Expect(lastSaid(w.Site, w.one, 1)).To(HaveField("Role", HaveSuffix("/roles/own")))
		Expect(lastSaid(w.Site, w.two, 1)).To(HaveField("Role", "none"))
	})
	row("§1 role path", "an absolute path", func() {
		Expect(lastSaid(w.Site, w.realm, 1)).To(HaveField("Role", filepath.Join(w.Options.Project, "shared/absolute")))
	})
	row("§1 role FQCN, §2 --ansible-collections-path", "in the flag's path, over that of the environment", func(ctx context.Context) {
		patch(ctx, w.packed, `{"metadata": {"labels": {"on": "yes"}}}`)
		Expect(lastSaid(w.Site, w.packed, 1)).To(HaveField("Role", filepath.Join(w.Options.Project, "collections/ansible_collections/contract/things/roles/say")))
	})
	row("§1 role name, §2 --ansible-roles-path", "P/role before ./roles/role, and P/roles/role", func() {
		Expect(lastSaid(w.Site, w.bare, 1)).To(HaveField("Role", filepath.Join(w.Options.Project, "shared/pathed")))
		Expect(lastSaid(w.Site, w.below, 1)).To(HaveField("Role", filepath.Join(w.Options.Project, "shared/roles/below")))
	})
	row("§1 playbook", "relative to the working directory", func() {
		Expect(lastSaid(w.Site, w.two, 1)).To(HaveField("Vars", HaveKeyWithValue("size", 3.0)))
	})
	row("§1 vars", "may hold Jinja", func() {
		Expect(lastSaid(w.Site, w.one, 1).Vars).To(HaveKeyWithValue("fromWatch", "3 here"))
	})
	row("§1 ${VAR}", "replaced where it is set, left with a warning or replaced by its default otherwise; a bare $ stays", func() {
		Expect(lastSaid(w.Site, w.one, 1).Vars).To(HaveKeyWithValue("mixed", w.Namespace+" ${NOT_SET} none $HOME"))
		Expect(w.Log()).To(MatchRegexp(`WARNING: the watches file names an environment variable that is not set.*"variable": "NOT_SET", "line": \d+`))
	})
	row("§1 snakeCaseParameters", "true by default; false leaves keys as they are", func() {
		Expect(lastSaid(w.Site, w.one, 1).Vars).To(And(HaveKeyWithValue("camel_case", "kept"), HaveKeyWithValue("camelCase", "absent")))
		Expect(lastSaid(w.Site, w.two, 1).Vars).To(And(HaveKeyWithValue("camelCase", "kept"), HaveKeyWithValue("camel_case", "absent")))
	})
	row("§1 markUnsafe", "text of a CR is data by default; false lets it be a template, and warns at start", func() {
		Expect(lastSaid(w.Site, w.one, 1).Vars).To(HaveKeyWithValue("text", "{{ 6*7 }}"))
		Expect(lastSaid(w.Site, w.two, 1).Vars["text"]).To(BeEquivalentTo(42))
		Expect(w.Log()).To(MatchRegexp(`WARNING: markUnsafe is false.*CWE-1336.*two\.example\.com`))
	})
	row("§1 cluster-scoped kind", "runs, and has a status", func(ctx context.Context) {
		Eventually(ctx, w.Condition(w.realm, "Successful")).Should(HaveField("Status", "True"))
	})
	row("§1 core kind, §6 without generations", "a Secret and a ConfigMap run when their content changes, and not for a label", func(ctx context.Context) {
		Expect(lastSaid(w.Site, w.secret, 1).Role).To(Equal("none"))
		Eventually(w.Ended(w.configMap)).Should(Equal(1))
		patch(ctx, w.secret, `{"metadata": {"labels": {"another": "label"}}}`)
		patch(ctx, w.configMap, `{"metadata": {"annotations": {"another": "annotation"}}}`)
		Consistently(w.Runs(w.secret), site.Calm).Should(Equal(1))
		patch(ctx, w.secret, `{"stringData": {"password": "changed"}}`)
		Eventually(w.Ended(w.secret)).Should(Equal(2))
		Expect(w.Runs(w.configMap)()).To(Equal(1))
	})
	row("§1 manageStatus", "false writes no conditions", func(ctx context.Context) {
		Eventually(w.Ended(w.below)).Should(Equal(1))
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(w.below), w.below)).To(Succeed())
		Expect(w.below.Object).NotTo(HaveKey("status"))
	})
	row("§5 no status subresource", "one line at start, runs go on", func(ctx context.Context) {
		Eventually(w.Ended(w.bare)).Should(Equal(1))
		patch(ctx, w.bare, `{"spec": {"size": 4}}`)
		Expect(lastSaid(w.Site, w.bare, 2).Vars).To(HaveKeyWithValue("size", 4.0))
		text, err := w.Log()
		Expect(err).NotTo(HaveOccurred())
		Expect(regexp.MustCompile(`no status subresource.*Kind=Bare`).FindAllString(text, -1)).To(HaveLen(1))
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(w.bare), w.bare)).To(Succeed())
		Expect(w.bare.Object).NotTo(HaveKey("status"))
	})
	row("§1 reconcilePeriod, §2 --reconcile-period", "the watch's, or with 0s the flag's 10h", func() {
		Eventually(comesAgain(w.Site, w.one)).Should(Equal("2h0m0s"))
		Eventually(comesAgain(w.Site, w.two)).Should(Equal("10h0m0s"))
	})
}
