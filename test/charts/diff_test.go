package charts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	preview "github.com/ensign-operator/ensign/internal/author/changes"
	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// diff executes ensign diff in the project of the site.
func diff(ctx context.Context, s *site.Site, args ...string) (code int, out, said string) {
	GinkgoHelper()
	var text, notes bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(ground.Root, "bin", "ensign"), append([]string{"diff", "-n", s.Namespace, "--kubeconfig", s.Options.Kubeconfig}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.Options.Project, &text, &notes
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err, code = nil, exit.ExitCode()
	}
	Expect(err).NotTo(HaveOccurred())
	return code, text.String(), notes.String()
}

var _ = Describe("ensign diff", func() {
	It("shows what an upgrade would do, by dry runs alone", func(ctx context.Context) {
		s := charted(ctx, map[string]string{
			"a.yaml":    configMap("a", "{}", `a: {{ .Values.a | quote }}`),
			"b.yaml":    configMap("b", "{}", `b: c`),
			"kept.yaml": configMap("kept", `{"helm.sh/resource-policy": keep}`, `b: c`),
			"s.yaml":    "apiVersion: v1\nkind: Secret\nmetadata: {name: \"{{ .Release.Name }}-s\"}\nstringData: {password: \"{{ .Values.a }}-secret\", same: stays-hidden}\n",
			"i.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-i\"}\nimmutable: true\ndata: {fixed: \"{{ .Values.fixed }}\"}\n",
			"l.yaml":    configMap("l", "{}", `found: {{ dig "data" "found" (randAlphaNum 8) (lookup "v1" "ConfigMap" .Release.Namespace (print .Release.Name "-l")) }}`),
		}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "fresh", map[string]any{"a": "one", "fixed": "x"})

		By("a resource that is in a file alone")
		text, err := json.Marshal(cr.Object)
		Expect(err).NotTo(HaveOccurred())
		s.Write(map[string]string{"cr.json": string(text)})
		code, out, said := diff(ctx, s, "-f", "cr.json")
		Expect(code).To(Equal(1), said+out)
		Expect(out).To(ContainSubstring("hello/fresh -n " + s.Namespace + ": install of release " + s.Namespace + "/fresh, revision 1\n"))
		Expect(strings.Count(out, "\n  + ")).To(Equal(6), "everything is created")
		Expect(out).NotTo(ContainSubstring("one-secret"))

		By("a release that is as it should be")
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		code, out, said = diff(ctx, s, "hello/fresh")
		Expect([]any{code, out, said}).To(Equal([]any{0, "", ""}))

		By("drift")
		Expect(s.Kill()).To(Succeed()) // It would repair it.
		object := &corev1.ConfigMap{}
		Expect(objectNamed(s, "fresh-a", object)(ctx)).To(Succeed())
		Expect(k8s.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"theirs"}}`)))).To(Succeed())
		log, err := audit.Open(auditLog)
		Expect(err).NotTo(HaveOccurred())
		code, out, said = diff(ctx, s, "hello/fresh", "--summary")
		Expect(code).To(Equal(1), said+out)
		Expect(out).To(ContainSubstring(": repair of release "))
		Expect(out).To(HaveSuffix("  ~ ConfigMap " + s.Namespace + "/fresh-a: /data/a\n1 update\n"))

		By("another chart")
		Expect(os.Remove(filepath.Join(s.Options.Project, "chart/templates/b.yaml"))).To(Succeed())
		Expect(os.Remove(filepath.Join(s.Options.Project, "chart/templates/kept.yaml"))).To(Succeed())
		s.Write(map[string]string{
			"chart/templates/a.yaml": configMap("a", "{}", `a: {{ .Values.a | quote }}`+"\n  drawn: {{ randAlphaNum 8 }}"),
			"chart/templates/i.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-i\"}\nimmutable: true\ndata: {fixed: \"{{ .Values.fixed }}-changed\"}\n",
			"chart/templates/h.yaml": configMap("hook", `{"helm.sh/hook": "post-upgrade,pre-upgrade"}`, "a: b"),
			"chart/templates/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: \"{{ .Release.Name }}-s\"}\nstringData: {password: \"{{ .Values.a }}-other-secret\", same: stays-hidden}\n",
		})
		code, out, said = diff(ctx, s, "--all")
		GinkgoWriter.Println(out)
		Expect(code).To(Equal(2), said+out)
		Expect(out).To(ContainSubstring(": upgrade of release " + s.Namespace + "/fresh, revision 2\n"))
		Expect(out).To(MatchRegexp(`(?s)~ ConfigMap \S+/fresh-a: /data/a, /data/drawn\n    another value at each rendering: /data/drawn\n.*\n    -  a: theirs\n    \+  a: one\n    \+  drawn: `))
		Expect(out).To(MatchRegexp(`(?s)~ Secret \S+/fresh-s: /data/password\n.*\n    -  password: \(redacted\)\n    \+  password: \(redacted, another value\)\n`))
		Expect(out).To(MatchRegexp(`~ ConfigMap \S+/fresh-i\n    fails: ConfigMap "fresh-i" is invalid: data: Forbidden: .*immutable.*upgrade-force`))
		Expect(out).To(MatchRegexp(`\n  - ConfigMap \S+/fresh-b\n`))
		Expect(out).To(MatchRegexp(`\n  = ConfigMap \S+/fresh-kept\n    it has the annotation helm.sh/resource-policy: keep\n`))
		Expect(out).To(MatchRegexp(`\n  > pre-upgrade: hook ConfigMap fresh-hook runs\n  > post-upgrade: hook ConfigMap fresh-hook runs\n`))
		Expect(out).NotTo(ContainSubstring("fresh-l"), "lookup finds what is there")
		for _, secret := range []string{"other-secret", "b25lLW90aGVyLXNlY3JldA==", "stays-hidden", "c3RheXMtaGlkZGVu"} {
			Expect(out).NotTo(ContainSubstring(secret))
		}

		By("the same as JSON")
		code, out, said = diff(ctx, s, "--all", "-o", "json")
		Expect(code).To(Equal(2), said+out)
		var list struct {
			Items []preview.Resource `json:"items"`
		}
		Expect(json.Unmarshal([]byte(out), &list)).To(Succeed())
		Expect(list.Items).To(HaveExactElements(And(HaveField("Resource", "hello/fresh"), HaveField("Action", "upgrade"), HaveField("Changes", HaveLen(5)), HaveField("Hooks", HaveLen(2)))))

		By("each request was a look or a dry run, whatever program sent it")
		events, err := log.Events(s.Namespace)
		Expect(err).NotTo(HaveOccurred())
		for _, e := range events {
			if !slices.Contains([]string{"get", "list", "watch"}, e.Verb) {
				Expect(e.RequestURI).To(ContainSubstring("dryRun=All"), "%s by %s", e.Verb, e.UserAgent)
			}
		}
		Expect(log.DryRuns(s.Namespace)).To(BeNumerically(">=", 10))
		Expect(statuses(s, "fresh")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
	})
})
