package mysql

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var _ = Describe("a cluster in another namespace", Label("long"), func() {
	It("serves the namespaces that it allows", func(ctx context.Context) {
		near, abroad, name := newPlace(ctx), ground.Namespace(ctx), own("abroad")
		// The same name: the Secret is this one, whatever the other namespace has.
		secret(ctx, near, "password", "of near")
		secret(ctx, abroad, "password", "of abroad")
		u := user(abroad, name, "nowhere", "SELECT")
		Expect(unstructured.SetNestedField(u.Object, near, "spec", "cluster", "namespace")).To(Succeed())
		ground.Create(ctx, u)
		fail(ctx, u, HaveSuffix(message(near, "server", abroad)))
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

	It("is not told from one that does not exist, nor from a namespace that does not", func(ctx context.Context) {
		near, abroad := newPlace(ctx), ground.Namespace(ctx)
		secret(ctx, abroad, "password", "of abroad")
		for name, at := range map[string][2]string{"forbidden": {near, "server"}, "absent": {near, "nowhere"}, "nowhere": {"no-namespace", "server"}} {
			u := user(abroad, own("blind"), "nowhere", "SELECT")
			u.SetName(name)
			Expect(unstructured.SetNestedMap(u.Object, spec{"namespace": at[0], "name": at[1]}, "spec", "cluster")).To(Succeed())
			ground.Create(ctx, u)
			fail(ctx, u, HaveSuffix(message(at[0], at[1], abroad)))
		}
	})

	It("keeps to itself why it cannot be logged in to, and who has an account", func(ctx context.Context) {
		near, abroad, name := newPlace(ctx), ground.Namespace(ctx), own("older")
		c := clusterOf(near, server)
		succeed(ctx, c)
		change(ctx, c, "allowedNamespaces", []any{abroad})
		for _, namespace := range []string{near, abroad} {
			secret(ctx, namespace, "password", "of "+namespace)
		}
		older := user(near, name, "nowhere", "SELECT")
		Expect(unstructured.SetNestedField(older.Object, near, "spec", "cluster", "namespace")).To(Succeed())
		ground.Create(ctx, older)
		succeed(ctx, older)
		u := user(abroad, name, "nowhere", "SELECT")
		Expect(unstructured.SetNestedField(u.Object, near, "spec", "cluster", "namespace")).To(Succeed())
		ground.Create(ctx, u)
		fail(ctx, u, HaveSuffix("belongs to an older MySQLUser of another namespace"))

		secret(ctx, near, "admin", "wrong")
		change(ctx, u, "privileges", granted("elsewhere", "SELECT"))
		// Which of the two it is depends on whose run comes first.
		fail(ctx, u, And(Or(ContainSubstring("cannot log in to MySQLCluster "+near+"/server: who manages it"), ContainSubstring("is not ready")),
			Not(ContainSubstring("admin")), Not(ContainSubstring("Access denied"))))
	})

	It("has each account and database once, for the older object", func(ctx context.Context) {
		place, base := ground.Namespace(ctx), own("twice")
		d, rival := database(place, base, "Delete"), database(place, base, "Delete")
		rival.SetName("rival")
		ground.Create(ctx, d)
		succeed(ctx, d)
		ground.Create(ctx, rival)
		fail(ctx, rival, ContainSubstring("MySQLDatabase "+place+"/database"))
		remove(ctx, rival)
		Expect(databases(ctx, base)).To(HaveLen(1))
		remove(ctx, d)
		Expect(databases(ctx, base)).To(BeEmpty())
	})
})

// message is what somebody is told of a cluster in another namespace, whether it is there or not.
func message(namespace, name, from string) string {
	return "Could not find requested MySQLCluster " + name + " in namespace " + namespace +
		", or it does not allow namespace " + from + " to use it by its spec.allowedNamespaces"
}
