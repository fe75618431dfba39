package mysql

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hostile are names that would be more than a name where somebody forgot to quote them.
var hostile = []string{
	"x`; DROP DATABASE canary; -- ", "x'; DROP DATABASE canary; -- ", `x"; DROP DATABASE canary; -- `, "a%", "a;b", "*", "*.*", "a.*",
	"x\nSELECT", "{{ 7 * 7 }}", "ünï", "名", strings.Repeat("x", 65), "", " ", "a b", `a\`, "../a", "a/b", "--all",
	"mysql", "MySQL", "sys", "information_schema", "performance_schema",
}

var _ = Describe("names", Label("long"), func() {
	BeforeEach(func(ctx context.Context) { ask(ctx, "CREATE DATABASE IF NOT EXISTS canary") })
	AfterEach(func(ctx context.Context) { Expect(databases(ctx, "canary")).To(HaveLen(1)) })

	It("are refused when they are more than names", func(ctx context.Context) {
		place := ground.Namespace(ctx)
		for _, name := range hostile {
			refuse(ctx, database(place, name, "Delete"), name)
			refuse(ctx, user(place, "fine", name, "SELECT"), name)
			if !strings.Contains(strings.ToLower(name), "s") || strings.ContainsAny(name, "`'\" ") { // Of these some are names of users.
				refuse(ctx, user(place, name, "fine", "SELECT"), name)
			}
		}
		for _, name := range []string{"root", "ROOT", "mariadb.sys", "mysql.sys", "mysql.session"} {
			refuse(ctx, user(place, name, "fine", "SELECT"), name)
		}
		for _, privilege := range []any{"SUPER", "SELECT ON *.* TO x; --", "GRANT OPTION", "ALL PRIVILEGES, PROXY"} {
			refuse(ctx, user(place, "fine", "fine", privilege), privilege)
		}
		for _, host := range []any{"'", "%' IDENTIFIED BY 'x", "a b", "`", "{{ 1 }}"} {
			u := user(place, "fine", "fine", "SELECT")
			Expect(unstructured.SetNestedSlice(u.Object, []any{host}, "spec", "hosts")).To(Succeed())
			refuse(ctx, u, host)
		}
	})

	It("stand for no other name", func(ctx context.Context) {
		place, name := ground.Namespace(ctx), own("wild")
		base := own("wild_card")
		lookalike := strings.ReplaceAll(base, "_", "y")
		ask(ctx, "CREATE DATABASE "+lookalike+"; CREATE TABLE "+lookalike+".t (c INT)")
		secret(ctx, place, "password", "wild")
		d, u := database(place, base, "Delete"), user(place, name, base, "SELECT", "CREATE")
		ground.Create(ctx, d, u)
		succeed(ctx, d, u)
		Expect(as(name, "wild", "CREATE TABLE "+base+".t (c INT); SELECT COUNT(*) FROM "+base+".t")(ctx)).To(Equal("0"))
		_, err := as(name, "wild", "SELECT COUNT(*) FROM "+lookalike+".t")(ctx)
		Expect(err).To(denied())
		remove(ctx, d)
		Expect(databases(ctx, lookalike)).To(HaveLen(1))
		Expect(databases(ctx, base)).To(BeEmpty())
	})

	It("have all characters that a server allows them", func(ctx context.Context) {
		place := ground.Namespace(ctx)
		base := (strings.ReplaceAll(own("long"), "_", "") + "-$" + strings.Repeat("x", 64))[:64]
		name := (own("A.b@c+d-e") + strings.Repeat("x", 32))[:32]
		secret(ctx, place, "password", "long")
		d, u := database(place, base, "Delete"), user(place, name, base, "CREATE")
		ground.Create(ctx, d, u)
		succeed(ctx, d, u)
		Expect(as(name, "long", "CREATE TABLE `"+base+"`.t (c INT)")(ctx)).To(BeEmpty())
		remove(ctx, u)
		remove(ctx, d)
		Expect(databases(ctx, base)).To(BeEmpty())
	})
})
