package mysqlbackup

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/mariadb/thief"
)

// What the script does alone is tested in test/dumps.
var _ = Describe("beside the operator", Label("long"), Ordered, func() {
	var (
		p      *place
		server *thief.Server
	)

	BeforeAll(func(ctx context.Context) {
		p = newPlace(ctx)
		treasure := filepath.Join(p.Dir, "treasure")
		Expect(os.WriteFile(treasure, []byte("what only the operator may read"), 0o600)).To(Succeed())
		const version = "10.11.2-MariaDB"
		var err error
		server, err = thief.Start(thief.Options{Wants: treasure, Version: version, Honest: map[string][][]string{
			"SET ": nil, "SHOW GLOBAL VARIABLES": {{"Variable_name", "Value"}, {"version", version}},
			"SELECT SCHEMA_NAME": {{"name"}, {"shop"}},
		}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(server.Stop()).To(Succeed()) })
		p.addCluster(ctx, "thief", server.Port)
		p.query(ctx, "CREATE DATABASE shop; CREATE TABLE shop.t (v TEXT)")
		// Nothing allows restores here, and there is little room.
		p.Options.Env = slices.DeleteFunc(p.Options.Env, func(v string) bool { return strings.HasPrefix(v, "MYSQLBACKUP_RESTORE_BESIDE=") })
		p.Options.Env = append(p.Options.Env, "MYSQLBACKUP_QUOTA=1Mi")
		p.begin(ctx)
	})

	It("a dump of a thief's server gives it no file", func(ctx context.Context) {
		cr := p.backup(ctx, "robbed", map[string]any{})
		change(ctx, cr, `{"spec":{"cluster":{"name":"thief"}}}`)
		Eventually(ctx, p.Condition(cr, "Failure")).Should(HaveField("Message", ContainSubstring("mariadb-dump")))
		Expect(server.Asked()).NotTo(BeEmpty())
		Expect(server.Stolen()).To(BeEmpty())
		Expect(api.Delete(ctx, cr)).To(Succeed())
	})

	It("no dump is restored unless that is allowed, and no other waits for it", func(ctx context.Context) {
		cr := p.backup(ctx, "kept", map[string]any{})
		Expect(p.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		restore := p.restore(ctx, "beside", map[string]any{"backup": "kept"})
		Expect(p.Outcome(ctx, restore)).To(HaveField("Message", And(
			ContainSubstring("restores run in Jobs"), ContainSubstring(lastName(ctx, cr)), ContainSubstring("mysqlbackup_restore_beside"))))
		Expect(status(ctx, restore, "dump")).To(BeNil())
		change(ctx, cr, `{"spec":{"interval":"36h"}}`)
		Eventually(ctx, p.Condition(cr, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Generation", int64(2))))
		Expect(api.Delete(ctx, restore)).To(Succeed())
	})

	It("no dump takes more room than its namespace has", func(ctx context.Context) {
		p.query(ctx, "CREATE TABLE shop.big (v LONGTEXT); INSERT INTO shop.big VALUES (REPEAT('x', 2000000))")
		cr := p.backup(ctx, "big", map[string]any{})
		Expect(p.Outcome(ctx, cr)).To(HaveField("Message", And(
			ContainSubstring("does not fit: 1048576 bytes are allowed"), ContainSubstring("mysqlbackup_quota"))))
		Expect(p.files("big")).To(BeEmpty())
		Expect(p.files("kept")).NotTo(BeEmpty())
		p.query(ctx, "DROP TABLE shop.big")
		Expect(api.Delete(ctx, cr)).To(Succeed())
	})
})
