package children

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manner is one way of writing a child. first and again each leave it marked; again is
// done twice, because a mark is lost by later writes more than by the first.
type manner struct {
	name  string
	first func(ctx context.Context, p *place, name string)
	again func(ctx context.Context, p *place, name string, change int)
}

func post(ctx context.Context, p *place, name string) {
	p.do(ctx, http.MethodPost, p.collection(), plain, p.child(name, 0))
}

func put(ctx context.Context, p *place, name string, change int) {
	p.do(ctx, http.MethodPut, p.path(name), plain, p.child(name, change))
}

func applyAs(manager string) func(ctx context.Context, p *place, name string, change int) {
	return func(ctx context.Context, p *place, name string, change int) {
		p.do(ctx, http.MethodPatch, p.path(name)+"?force=true&fieldManager="+manager, applying, p.child(name, change))
	}
}

func patching(contentType string, bodies ...any) func(ctx context.Context, p *place, name string, change int) {
	return func(ctx context.Context, p *place, name string, change int) {
		p.do(ctx, http.MethodPatch, p.path(name), contentType, bodies[(change-1)%len(bodies)])
	}
}

func apply(ctx context.Context, p *place, name string) { applyAs("a")(ctx, p, name, 0) }

// without is metadata that says there is no owner.
var without = object{"metadata": object{"ownerReferences": nil, "annotations": nil}}

// annotated has something to lose.
func annotated(ctx context.Context, p *place, name string) {
	child := p.child(name, 0)
	child["metadata"].(object)["annotations"] = object{"a": "b"}
	child["metadata"].(object)["labels"] = object{"l": "m"}
	if p.namespace != "" {
		child["metadata"].(object)["ownerReferences"] = []any{foreign(ctx, p.namespace)}
	}
	p.do(ctx, http.MethodPost, p.collection(), plain, child)
}

func manners() []manner {
	return []manner{
		{"a POST, then PUTs of the definition", post, put},
		{"a PUT that makes it, then PUTs", func(ctx context.Context, p *place, name string) { put(ctx, p, name, 0) }, put},
		{"applies by one field manager", apply, applyAs("a")},
		{"applies by two field managers", apply, func(ctx context.Context, p *place, name string, change int) {
			applyAs([]string{"b", "a"}[change%2])(ctx, p, name, change)
		}},
		{"a POST, then applies", post, applyAs("a")},
		{"an apply, then PUTs", apply, put},
		{"an apply, then merge patches", apply, patching(merging, without)},
		{"applies in YAML", func(ctx context.Context, p *place, name string) {
			p.do(ctx, http.MethodPatch, p.path(name)+"?fieldManager=a", applying, "apiVersion: rbac.authorization.k8s.io/v1\nkind: "+p.child(name, 0)["kind"].(string)+"\nmetadata: {name: "+name+"}\n")
		}, applyAs("a")},
		{"a POST in YAML", func(ctx context.Context, p *place, name string) {
			p.do(ctx, http.MethodPost, p.collection(), "application/yaml", "metadata: {name: "+name+"}\n")
		}, put},
		{"merge patches that remove it", annotated, patching(merging, without, object{"metadata": object{"ownerReferences": []any{}, "annotations": object{"operator-sdk/primary-resource": nil}}})},
		{"merge patches of other things", post, patching(merging, object{"metadata": object{"labels": object{"l": "m"}}}, object{"rules": nil})},
		{"strategic patches that remove it", annotated, patching(strategic, without)},
		{"strategic patches with directives", annotated, patching(strategic,
			object{"metadata": object{"ownerReferences": []any{object{"$patch": "replace"}}, "annotations": object{"$patch": "replace", "c": "d"}}},
			object{"metadata": object{"$retainKeys": []any{"name", "labels"}, "labels": object{"l": "n"}}},
		)},
		{"JSON patches that remove it", annotated, patching(jsonPatch,
			[]any{object{"op": "add", "path": "/metadata/ownerReferences", "value": []any{}}, object{"op": "replace", "path": "/metadata/annotations", "value": object{}}},
			[]any{object{"op": "add", "path": "/metadata/annotations", "value": object{}}, object{"op": "remove", "path": "/metadata/annotations"}},
		)},
		{"JSON patches of other things", post, patching(jsonPatch, []any{object{"op": "add", "path": "/metadata/labels", "value": object{"l": "m"}}})},
	}
}

var _ = Describe("the writes of a run", Label("long"), Ordered, ContinueOnFailure, func() {
	var places map[string]*place
	names := []string{"in the CR's namespace", "in another namespace", "cluster-scoped", "of a cluster-scoped CR", "cluster-scoped, of a cluster-scoped CR"}
	var crs []*run

	BeforeAll(func(ctx context.Context) {
		here, there := ground.Namespace(ctx), ground.Namespace(ctx)
		one, two := newRun(ctx, box, here, "one"), newRun(ctx, tank, "", "two")
		crs = []*run{one, two}
		places = map[string]*place{
			names[0]: {one, here, "reference"},
			names[1]: {one, there, "annotations"},
			names[2]: {one, "", "annotations"},
			names[3]: {two, there, "reference"},
			names[4]: {two, "", "reference"},
		}
	})

	for i, where := range names {
		for j, m := range manners() {
			id := string(rune('a'+i)) + string(rune('a'+j))
			It("belongs to the CR, "+where+", by "+m.name, func(ctx context.Context) {
				p, name := places[where], "child-"+id
				m.first(ctx, p, name)
				p.isMarked(ctx, name)
				for change := 1; change <= 2; change++ {
					m.again(ctx, p, name, change)
					p.isMarked(ctx, name)
				}
			})

			It("is not taken over, "+where+", by "+m.name, func(ctx context.Context) {
				p, name := places[where], "there-before-"+id
				theirs := p.child(name, 0)
				if p.namespace != "" {
					theirs["metadata"].(object)["ownerReferences"] = []any{foreign(ctx, p.namespace)}
				}
				Expect(k8s.Create(ctx, toUnstructured(theirs))).To(Succeed())
				for change := 1; change <= 2; change++ {
					m.again(ctx, p, name, change)
					p.isFree(ctx, name)
				}
			})
		}
	}

	It("goes with the CR where it is referenced, and nothing else does", func(ctx context.Context) {
		for _, cr := range crs {
			Expect(k8s.Delete(ctx, cr.cr)).To(Succeed())
		}
		for i, where := range names {
			for j := range manners() {
				id := string(rune('a'+i)) + string(rune('a'+j))
				if p := places[where]; p.marked == "reference" {
					Eventually(func() error { _, err := p.find(ctx, "child-"+id); return client.IgnoreNotFound(err) }).Should(Succeed())
					Eventually(func() bool { _, err := p.find(ctx, "child-"+id); return err != nil }).Should(BeTrue(), "%s stays, %s", id, where)
				}
			}
		}
		Consistently(func(g Gomega) {
			for i, where := range names {
				for j := range manners() {
					id := string(rune('a'+i)) + string(rune('a'+j))
					p := places[where]
					if p.marked != "reference" {
						_, err := p.find(ctx, "child-"+id)
						g.Expect(err).NotTo(HaveOccurred(), "%s", where)
					}
					_, err := p.find(ctx, "there-before-"+id)
					g.Expect(err).NotTo(HaveOccurred(), "%s", where)
				}
			}
		}).WithContext(ctx).WithTimeout(calm).WithPolling(calm / 5).Should(Succeed())
	})
})
