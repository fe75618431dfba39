package mysql

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/mariadb"
	"github.com/ensign-operator/ensign/test/mariadb/thief"
)

// Whoever may write a MySQLCluster chooses to which server the operator logs in, and with
// which Secret.
var _ = Describe("a server of a tenant's own", func() {
	// lure starts a server that asks for a file of the operator's, and makes a
	// MySQLCluster of it, which may seem to be ready.
	lure := func(ctx context.Context, version string, honest map[string][][]string) (*thief.Server, string) {
		GinkgoHelper()
		treasure := filepath.Join(operator.Options.Home, "treasure")
		Expect(os.WriteFile(treasure, []byte("what only the operator may read"), 0o600)).To(Succeed())
		s, err := thief.Start(thief.Options{Wants: treasure, Version: version, Honest: honest})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(s.Stop()).To(Succeed()) })
		place := ground.Namespace(ctx)
		secret(ctx, place, "admin", "of admin")
		secret(ctx, place, "password", "of the user")
		ground.Create(ctx, clusterOf(place, &mariadb.Server{Host: "127.0.0.1", Port: s.Port}))
		return s, place
	}

	It("gets no file at the login", func(ctx context.Context) {
		s, place := lure(ctx, "8.4.3", nil)
		fail(ctx, object("MySQLCluster", place, "server", nil), ContainSubstring("LOAD_LOCAL"))
		Expect(s.Asked()).NotTo(BeEmpty())
		Expect(s.Stolen()).To(BeEmpty())
	})

	DescribeTable("gets no file of the modules either", func(ctx context.Context, version string) {
		s, place := lure(ctx, version, map[string][][]string{
			"SET": nil, "SHOW GLOBAL VARIABLES": {{"Variable_name", "Value"}, {"version", version}, {"partial_revokes", "OFF"}},
		})
		succeed(ctx, object("MySQLCluster", place, "server", nil))
		Expect(s.Asked()).To(BeEmpty(), "a login that looks fine")
		d, u := here(database(place, own("robbed"), "Retain")), here(user(place, own("robbed"), "nowhere", "SELECT"))
		ground.Create(ctx, d, u)
		fail(ctx, d, Not(BeEmpty()))
		fail(ctx, u, Not(BeEmpty()))
		Expect(len(s.Asked())).To(BeNumerically(">=", 2), "both modules were asked for a file")
		Expect(s.Stolen()).To(BeEmpty())
	},
		Entry("for MySQL", "8.4.3"),
		Entry("for MariaDB", "11.8.2-MariaDB"),
	)

	It("gets only passwords whose Secrets allow it", func(ctx context.Context) {
		place := ground.Namespace(ctx)
		plain := &corev1.Secret{ObjectMeta: metaOf(place, "admin"), StringData: map[string]string{"password": server.Password}}
		ground.Create(ctx, plain)
		c := clusterOf(place, server)
		ground.Create(ctx, c)
		label := "myapp.myorg.tld/mysql-login=allowed"
		fail(ctx, c, And(ContainSubstring("Secret "+place+"/admin has no label "+label), ContainSubstring("kubectl label --namespace="+place+" secret admin "+label)))

		By("which a value of the label that says something else does not")
		before := plain.DeepCopy()
		plain.Labels = map[string]string{"myapp.myorg.tld/mysql-login": "forbidden"}
		Expect(ground.Client.Patch(ctx, plain, client.MergeFrom(before))).To(Succeed())
		fail(ctx, c, ContainSubstring("has no label"))

		By("and which changes it back at once")
		before = plain.DeepCopy()
		plain.Labels = mariadb.SecretLabels()
		Expect(ground.Client.Patch(ctx, plain, client.MergeFrom(before))).To(Succeed())
		succeed(ctx, c)

		By("as with an account's")
		name := own("unlabeled")
		ground.Create(ctx, &corev1.Secret{ObjectMeta: metaOf(place, "password"), StringData: map[string]string{"password": "of another application"}})
		u := here(user(place, name, "nowhere", "SELECT"))
		ground.Create(ctx, u)
		fail(ctx, u, ContainSubstring("Secret "+place+"/password has no label "+label))
		_, err := as(name, "of another application", "SELECT 1")(ctx)
		Expect(err).To(refused())
	})

	It("is logged in to where the spec says, whatever the status does", func(ctx context.Context) {
		s, err := thief.Start(thief.Options{Version: "8.4.3"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(s.Stop()).To(Succeed()) })
		place := newPlace(ctx)
		secret(ctx, place, "password", "of the user")
		c := object("MySQLCluster", place, "server", nil)
		succeed(ctx, c)
		forged := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status": {"endpoint": "127.0.0.1:%d"}}`, s.Port))
		Expect(ground.Client.Status().Patch(ctx, c, forged)).To(Succeed())
		u := here(user(place, own("led"), "nowhere", "SELECT"))
		ground.Create(ctx, u)
		succeed(ctx, u)
		Expect(s.Asked()).To(BeEmpty())
	})
})
