package mysql

import (
	"context"
	"crypto/rand"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// forge writes a status, as nobody but the operator should be allowed to.
func forge(ctx context.Context, o *unstructured.Unstructured, status string) {
	GinkgoHelper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status": `+status+`}`))
	Expect(ground.Client.Status().Patch(ctx, o, patch)).To(Succeed())
}

// What was once in a status, or was written into it, decides about nothing of others.
var _ = Describe("a forged status", func() {
	It("drops no database that the spec does not name", func(ctx context.Context) {
		place, base, victim := ground.Namespace(ctx), own("forger"), own("victim")
		ask(ctx, "CREATE DATABASE "+victim)
		d := database(place, base, "Delete")
		ground.Create(ctx, d)
		succeed(ctx, d)
		forge(ctx, d, `{"databaseName": "`+victim+`"}`)
		remove(ctx, d)
		Expect(databases(ctx, victim)).To(HaveLen(1))
	})

	It("drops no account of the server or of the cluster", func(ctx context.Context) {
		near := ground.Namespace(ctx)
		administrator, password := own("administrator"), rand.Text()
		ask(ctx, "CREATE USER "+administrator+"@'%' IDENTIFIED BY '"+password+"'; GRANT ALL ON *.* TO "+administrator+"@'%' WITH GRANT OPTION")
		secret(ctx, near, "password", "of the user")
		login(ctx, near, administrator, password)
		c := clusterOf(near, server)
		ground.Create(ctx, c)
		succeed(ctx, c)
		u := here(user(near, administrator, "nowhere", "SELECT"))
		ground.Create(ctx, u)
		fail(ctx, u, ContainSubstring("belongs to the cluster itself"))
		forge(ctx, u, `{"hosts": ["%"]}`)
		remove(ctx, u)
		Expect(as(administrator, password, "SELECT 1")(ctx)).To(Equal("1"))
	})
})
