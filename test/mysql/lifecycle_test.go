package mysql

import (
	"context"
	"crypto/rand"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("a database and its user", func() {
	It("exist as long as their objects, and are as these say", func(ctx context.Context) {
		place, name, base := ground.Namespace(ctx), own("user"), own("base")
		first, second := rand.Text(), `'"\%`+"`; "+rand.Text()
		secret(ctx, place, "password", first)
		d, u := database(place, base, "Delete"), user(place, name, base, "SELECT")
		ground.Create(ctx, d, u)
		succeed(ctx, d, u)

		By("logging in with the Secret's password")
		ask(ctx, "CREATE TABLE "+base+".t (c INT); INSERT INTO "+base+".t VALUES (7)")
		Expect(as(name, first, "SELECT c FROM "+base+".t")(ctx)).To(Equal("7"))
		_, err := as(name, first, "INSERT INTO "+base+".t VALUES (8)")(ctx)
		Expect(err).To(denied())
		_, err = as(name, "another", "SELECT 1")(ctx)
		Expect(err).To(refused())

		By("changing the password")
		secret(ctx, place, "password", second)
		Eventually(ctx, as(name, second, "SELECT 1")).Should(Equal("1"))
		_, err = as(name, first, "SELECT 1")(ctx)
		Expect(err).To(refused())

		By("changing the privileges")
		change(ctx, u, "privileges", granted(base, "INSERT"))
		succeed(ctx, u)
		Expect(as(name, second, "INSERT INTO "+base+".t VALUES (8)")(ctx)).To(BeEmpty())
		_, err = as(name, second, "SELECT c FROM "+base+".t")(ctx)
		Expect(err).To(denied())

		By("deleting both")
		remove(ctx, u)
		_, err = as(name, second, "SELECT 1")(ctx)
		Expect(err).To(refused())
		remove(ctx, d)
		Expect(databases(ctx, base)).To(BeEmpty())
	})

	It("keeps its data when its policy says so", func(ctx context.Context) {
		place, base := ground.Namespace(ctx), own("kept")
		d := database(place, base, "Retain")
		ground.Create(ctx, d)
		succeed(ctx, d)
		ask(ctx, "CREATE TABLE "+base+".t (c INT); INSERT INTO "+base+".t VALUES (7)")
		remove(ctx, d)
		Expect(ask(ctx, "SELECT c FROM "+base+".t")).To(Equal("7"))
	})

	It("loses the accounts of hosts that leave the list, and no others", func(ctx context.Context) {
		place, name := ground.Namespace(ctx), own("hosts")
		secret(ctx, place, "password", rand.Text())
		ask(ctx, "CREATE USER "+name+"@'10.0.0.1'")
		u := user(place, name, "nowhere", "SELECT")
		Expect(unstructured.SetNestedSlice(u.Object, []any{"127.0.0.1", "10.%"}, "spec", "hosts")).To(Succeed())
		ground.Create(ctx, u)
		succeed(ctx, u)
		hosts := func() string { return ask(ctx, "SELECT host FROM mysql.user WHERE user = '"+name+"' ORDER BY host") }
		Expect(hosts()).To(Equal("10.%\n10.0.0.1\n127.0.0.1"))
		change(ctx, u, "hosts", []any{"127.0.0.1"})
		succeed(ctx, u)
		Expect(hosts()).To(Equal("10.0.0.1\n127.0.0.1"))
		remove(ctx, u)
		Expect(hosts()).To(Equal("10.0.0.1"))
	})

	It("is not changed by a run that has nothing to do", func(ctx context.Context) {
		place, name, base := ground.Namespace(ctx), own("again"), own("again")
		secret(ctx, place, "password", rand.Text())
		d, u := database(place, base, "Delete"), user(place, name, base, "SELECT", "INSERT")
		ground.Create(ctx, d, u)
		succeed(ctx, d, u)
		before := ask(ctx, "SHOW CREATE USER "+name+"@'%'; SHOW GRANTS FOR "+name+"@'%'")
		first := harness.ConditionOf(u, "Successful").Result["completion"]
		Expect(first).NotTo(BeNil())
		Expect(ground.Client.Patch(ctx, &corev1.Secret{ObjectMeta: metaOf(place, "password")},
			client.RawPatch("application/merge-patch+json", []byte(`{"stringData": {"another": "key"}}`)))).To(Succeed())
		// The status, not the log: it is written after the run has ended.
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(u), u)).To(Succeed())
			g.Expect(harness.ConditionOf(u, "Successful").Status).To(Equal("True"), "%+v", harness.ConditionOf(u, "Failure"))
			g.Expect(harness.ConditionOf(u, "Successful").Result).NotTo(HaveKeyWithValue("completion", first))
		}).Should(Succeed())
		Expect(harness.ConditionOf(u, "Successful").Result).To(HaveKeyWithValue("changed", BeEquivalentTo(0)))
		Expect(ask(ctx, "SHOW CREATE USER "+name+"@'%'; SHOW GRANTS FOR "+name+"@'%'")).To(Equal(before))
	})
})
