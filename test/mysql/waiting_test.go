package mysql

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/mariadb"
)

var _ = Describe("a user without its server", Label("long"), func() {
	It("waits for a cluster that is missing", func(ctx context.Context) {
		place, name := ground.Namespace(ctx), own("early")
		secret(ctx, place, "password", "waiting")
		u := here(user(place, name, "nowhere", "SELECT"))
		ground.Create(ctx, u)
		fail(ctx, u, ContainSubstring("Could not find requested MySQLCluster server"))

		secret(ctx, place, "admin", server.Password)
		c := clusterOf(place, server)
		ground.Create(ctx, c)
		began := time.Now()
		succeed(ctx, c)
		ready := time.Now()
		succeed(ctx, u)
		AddReportEntry("seconds", fmt.Sprintf("cluster ready after %s, its user %s later", ready.Sub(began), time.Since(ready)))
		Expect(as(name, "waiting", "SELECT 1")(ctx)).To(Equal("1"))
	})

	It("says so when the administrator's password is wrong", func(ctx context.Context) {
		place, wrong := ground.Namespace(ctx), rand.Text()
		secret(ctx, place, "admin", wrong)
		c, d := clusterOf(place, server), here(database(place, own("late"), "Delete"))
		ground.Create(ctx, c, d)
		fail(ctx, c, And(ContainSubstring("Access denied"), ContainSubstring("Secret "+place+"/admin"), Not(ContainSubstring(wrong))))
		Expect(c.Object["status"]).To(HaveKeyWithValue("ready", false))
		fail(ctx, d, ContainSubstring("is not ready"))
		secret(ctx, place, "admin", server.Password)
		succeed(ctx, c, d)
	})

	It("says so while the server is down", func(ctx context.Context) {
		mine := newServer(ctx, mariadb.Options{})
		place, name := ground.Namespace(ctx), own("outage")
		secret(ctx, place, "admin", mine.Password)
		secret(ctx, place, "password", "before")
		u := here(user(place, name, "nowhere", "SELECT"))
		ground.Create(ctx, clusterOf(place, mine), u)
		succeed(ctx, u)

		Expect(mine.Kill()).To(Succeed())
		secret(ctx, place, "password", "after")
		fail(ctx, u, And(ContainSubstring(mine.Address()), MatchRegexp("(?i)can.?t connect")))
		Expect(harness.ConditionOf(u, "Successful").Status).To(Equal("False"))

		Expect(mine.Restart(ctx)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return mine.QueryAs(ctx, mariadb.Login{User: name, Password: "after"}, "SELECT 1")
		}).Should(Equal("1"))
		succeed(ctx, u)
	})

	It("fails to be deleted while the server is down, and is dropped then", func(ctx context.Context) {
		mine := newServer(ctx, mariadb.Options{})
		place, name := ground.Namespace(ctx), own("leaving")
		secret(ctx, place, "admin", mine.Password)
		secret(ctx, place, "password", "leaving")
		u := here(user(place, name, "nowhere", "SELECT"))
		ground.Create(ctx, clusterOf(place, mine), u)
		succeed(ctx, u)
		Expect(mine.Halt()).To(Succeed())
		Expect(ground.Client.Delete(ctx, u)).To(Succeed())
		fail(ctx, u, MatchRegexp("(?i)can.?t connect|is not ready"))
		Expect(u.GetFinalizers()).NotTo(BeEmpty())
		Expect(mine.Restart(ctx)).To(Succeed())
		Eventually(ctx, gone(u)).Should(BeTrue())
		Expect(mine.Query(ctx, "SELECT COUNT(*) FROM mysql.user WHERE user = '"+name+"'")).To(Equal("0"))
	})
})
