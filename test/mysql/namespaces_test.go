package mysql

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var _ = Describe("a cluster in another namespace", func() {
	It("serves the namespaces that it allows", func(ctx context.Context) {
		near, abroad, name := newPlace(ctx), ground.Namespace(ctx), own("abroad")
		// The same name: the Secret is this one, whatever the other namespace has.
		secret(ctx, near, "password", "of near")
		secret(ctx, abroad, "password", "of abroad")
		u := user(abroad, name, "nowhere", "SELECT")
		Expect(unstructured.SetNestedField(u.Object, near, "spec", "cluster", "namespace")).To(Succeed())
		create(ctx, u)
		fail(ctx, u, And(ContainSubstring("does not allow namespace "+abroad), ContainSubstring("allowedNamespaces")))
		_, err := as(name, "of abroad", "SELECT 1")(ctx)
		Expect(err).To(refused())

		c := clusterOf(near, server)
		succeed(ctx, c)
		change(ctx, c, "allowedNamespaces", []any{abroad})
		succeed(ctx, u)
		Expect(as(name, "of abroad", "SELECT 1")(ctx)).To(Equal("1"))
		_, err = as(name, "of near", "SELECT 1")(ctx)
		Expect(err).To(refused())
	})

	It("has each account and database once, for the older object", func(ctx context.Context) {
		place, base := ground.Namespace(ctx), own("twice")
		d, rival := database(place, base, "Delete"), database(place, base, "Delete")
		rival.SetName("rival")
		create(ctx, d)
		succeed(ctx, d)
		create(ctx, rival)
		fail(ctx, rival, ContainSubstring("MySQLDatabase "+place+"/database"))
		remove(ctx, rival)
		Expect(databases(ctx, base)).To(HaveLen(1))
		remove(ctx, d)
		Expect(databases(ctx, base)).To(BeEmpty())
	})
})
