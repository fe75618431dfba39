package reads

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/internal/readcache"
)

func data(a answer) any {
	values, _ := a.body["data"].(map[string]any)
	return values["n"]
}

func namesOf(a answer) []string {
	names := []string{}
	items, _ := a.body["items"].([]any)
	for _, item := range items {
		names = append(names, item.(map[string]any)["metadata"].(map[string]any)["name"].(string))
	}
	return names
}

var _ = Describe("A run that writes", func() {
	It("reads what it has written at once, in every way", func(ctx context.Context) {
		w := open(cluster.Config, readcache.Options{})
		r := w.grant(ctx)
		namespace := space(ctx, "written")
		all := "/api/v1/namespaces/" + namespace + "/configmaps"
		marked := all + "?labelSelector=mark%3Dyes"
		r.warm(ctx, all)
		const rounds = 40
		for i := range rounds {
			name := fmt.Sprintf("round-%d", i)
			one := all + "/" + name
			manifest := func(n string) string {
				return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"mark":"yes"}},"data":{"n":%q}}`, name, n)
			}
			for n, write := range []func(n string) answer{
				func(n string) answer { return r.do(ctx, http.MethodPost, all, "application/json", manifest(n)) },
				func(n string) answer { return r.do(ctx, http.MethodPut, one, "application/json", manifest(n)) },
				func(n string) answer {
					return r.do(ctx, http.MethodPatch, one, "application/merge-patch+json", `{"data":{"n":"`+n+`"}}`)
				},
				func(n string) answer {
					return r.do(ctx, http.MethodPatch, one, "application/json-patch+json", `[{"op":"replace","path":"/data/n","value":"`+n+`"}]`)
				},
				func(n string) answer {
					return r.do(ctx, http.MethodPatch, one, "application/strategic-merge-patch+json", `{"data":{"n":"`+n+`"}}`)
				},
				func(n string) answer {
					return r.do(ctx, http.MethodPatch, one+"?fieldManager=test&force=true", "application/apply-patch+yaml", manifest(n))
				},
			} {
				value := strconv.Itoa(n)
				Expect(write(value).code).To(BeNumerically("<", 300))
				Expect(data(r.get(ctx, one))).To(Equal(value))
				Expect(namesOf(r.get(ctx, marked))).To(ContainElement(name))
				for _, item := range r.get(ctx, all).body["items"].([]any) {
					if item := item.(map[string]any); item["metadata"].(map[string]any)["name"] == name {
						Expect(item["data"]).To(HaveKeyWithValue("n", value))
					}
				}
			}
			if i%2 == 0 {
				Expect(r.do(ctx, http.MethodDelete, one, "", "").code).To(Equal(200))
				Expect(r.get(ctx, one).code).To(Equal(404))
				Expect(namesOf(r.get(ctx, all))).NotTo(ContainElement(name))
				Expect(namesOf(r.get(ctx, marked))).NotTo(ContainElement(name))
			}
		}
		Expect(namesOf(r.get(ctx, marked))).To(HaveLen(rounds / 2))
		Expect(w.hits()).To(BeNumerically(">", rounds), "or nothing is shown")

		By("deleting the rest at once")
		Expect(r.do(ctx, http.MethodDelete, marked, "", "").code).To(Equal(200))
		got := r.get(ctx, marked)
		Expect(namesOf(got)).To(BeEmpty())
		Expect(got.cached).To(BeFalse(), "what a deletion of many came to is not known")
	})

	It("reads what waits for a finalizer, until that is gone", func(ctx context.Context) {
		w := open(cluster.Config, readcache.Options{})
		r := w.grant(ctx)
		namespace := space(ctx, "finalized")
		all := "/apis/reads.ensign.io/v1/namespaces/" + namespace + "/widgets"
		r.warm(ctx, all)
		for i := range 10 {
			name := fmt.Sprintf("w-%d", i)
			one := all + "/" + name
			Expect(r.do(ctx, http.MethodPost, all, "application/json",
				fmt.Sprintf(`{"apiVersion":"reads.ensign.io/v1","kind":"Widget","metadata":{"name":%q,"finalizers":["ensign.io/test"]}}`, name)).code).To(Equal(201))
			Expect(r.do(ctx, http.MethodPatch, one+"/status", "application/merge-patch+json", `{"status":{"ready":true}}`).body["status"]).To(HaveKey("ready"))
			Expect(r.get(ctx, one).body["status"]).To(HaveKey("ready"))
			Expect(r.do(ctx, http.MethodDelete, one, "", "").code).To(Equal(200))
			got := r.get(ctx, one)
			Expect(got.code).To(Equal(200))
			Expect(got.body["metadata"]).To(HaveKey("deletionTimestamp"))
			Expect(r.warm(ctx, one)["metadata"]).To(HaveKey("deletionTimestamp"))
			Expect(r.do(ctx, http.MethodPatch, one, "application/merge-patch+json", `{"metadata":{"finalizers":null}}`).code).To(Equal(200))
			Expect(r.get(ctx, one).code).To(Equal(404))
			Expect(namesOf(r.get(ctx, all))).To(BeEmpty())
		}
		r.warm(ctx, all)
	})

	It("is followed by another that sees all of it", func(ctx context.Context) {
		w := open(cluster.Config, readcache.Options{})
		namespace := space(ctx, "followed")
		one := "/api/v1/namespaces/" + namespace + "/configmaps/one"
		first := w.grant(ctx)
		Expect(first.do(ctx, http.MethodPost, "/api/v1/namespaces/"+namespace+"/configmaps", "application/json",
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"n":"0"}}`).code).To(Equal(201))
		first.warm(ctx, one)
		before := w.hits()
		for i := range 100 {
			r := w.grant(ctx)
			n := strconv.Itoa(i)
			Expect(r.do(ctx, http.MethodPatch, one, "application/merge-patch+json", `{"data":{"n":"`+n+`"}}`).code).To(Equal(200))
			r.end()
			next := w.grant(ctx)
			Expect(data(next.get(ctx, one))).To(Equal(n))
			if i%5 == 0 {
				next.warm(ctx, one)
			}
		}
		Expect(w.hits()).To(BeNumerically(">=", before+20))
	})
})
