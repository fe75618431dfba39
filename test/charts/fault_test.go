package charts

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("a fault that is not the CR's", func() {
	It("is named as the network's, stops neither the manager nor others, and ends with its cause", func(ctx context.Context) {
		var there atomic.Bool
		schemas := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if !there.Load() {
				http.Error(w, "away", http.StatusServiceUnavailable)
				return
			}
			_, _ = w.Write([]byte(`{"type":"string"}`))
		}))
		DeferCleanup(schemas.Close)
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: b")}, "")
		s.Write(map[string]string{"chart/values.schema.json": `{"properties":{"text":{"$ref":"` + schemas.URL + `/text.json"}}}`})
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "fetched", map[string]any{"text": "a"})
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(And(HaveField("Reason", "SchemaUnreachable"), HaveField("Message", And(ContainSubstring(schemas.URL), ContainSubstring("503")))))
		there.Store(true)
		Eventually(ctx, s.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
		Expect(s.Condition(cr, "Irreconcilable")(ctx)).To(HaveField("Status", BeEmpty()))

		By("a value that the fetched schema refuses")
		refused := harness.Custom(hello, s.Namespace, "refused", map[string]any{"text": int64(1)})
		s.Create(ctx, refused)
		Expect(s.Outcome(ctx, refused)).To(HaveField("Reason", "InvalidSpec"))
	})

	It("names the object and the template of a manifest that does not decode", func(ctx context.Context) {
		s := charted(ctx, map[string]string{
			"a.yaml": configMap("a", "{}", "a: b"),
			"b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-b, labels: {x: {{ .Values.x | default \"y\" }}}}\n",
		}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "decodes", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Message", And(ContainSubstring("ConfigMap decodes-b of plain/templates/b.yaml: "), ContainSubstring("metadata.labels"), Not(ContainSubstring("decodes-a")))))
		s.Write(map[string]string{"chart/values.yaml": "x: text\n"})
		Eventually(ctx, s.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
	})

	It("is named as the chart's, and ends when the chart is fixed", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: b")}, "").Start(ctx, hello.Kind)
		s.Write(map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: plain\nversion: 1.0.0\ndependencies: [{name: db, version: 1.0.0, repository: \"\"}]\n"})
		cr := harness.Custom(hello, s.Namespace, "halved", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(And(HaveField("Reason", "InvalidChart"), HaveField("Message", ContainSubstring("depends on db"))))
		s.Write(map[string]string{"chart/charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "chart/values.schema.json": `{"properties":{"size":{"type":"integer"}}}`, "chart/values.yaml": "size: big\n"})
		Eventually(ctx, s.Condition(cr, "Failure")).Should(HaveField("Message", ContainSubstring("the chart's values.yaml or the watch's overrideValues")))
		s.Write(map[string]string{"chart/values.yaml": "size: 1\n"})
		Eventually(ctx, s.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
	})
})
