//go:build node

package node

import (
	"context"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/harness"
)

// repeatsKilledJobs kills the pod of a dump and that of a restore while a lock holds them in
// the middle of their work.
func repeatsKilledJobs(ctx context.Context) {
	const name = "killed"
	for _, work := range []struct {
		kind, done string
		spec       map[string]any
	}{
		{"MySQLBackup", ".status.lastBackup.name", map[string]any{
			"databases": []any{"kept"}, "storage": map[string]any{"persistentVolumeClaim": "mysql-dumps"},
		}},
		{"MySQLRestore", ".status.restored.dump", map[string]any{"backup": name}},
	} {
		By(work.kind)
		release := lockKept(ctx)
		spec := map[string]any{"cluster": map[string]any{"name": sample}}
		maps.Copy(spec, work.spec)
		cr := harness.Custom(schema.GroupKind{Group: "myapp.myorg.tld", Kind: work.kind}, namespace, name, spec)
		Expect(api.Create(ctx, cr)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { kubectl(ctx, "delete", work.kind, name, "--ignore-not-found") })
		field := func(path string) string {
			return kubectl(ctx, "get", work.kind, name, "--output=jsonpath={"+path+"}")
		}

		Eventually(ctx, func() string {
			return asRoot(ctx, "SELECT COUNT(*) FROM performance_schema.processlist WHERE state LIKE 'Waiting for %metadata lock'")
		}).Should(Equal("1\n"))
		kubectl(ctx, "delete", "pod", "--selector=mysqlbackup-for="+string(cr.GetUID()), "--grace-period=1")
		Eventually(ctx, func() string { return field(`.status.conditions[?(@.type=="Failure")].message`) }).
			Should(ContainSubstring("failed in Job " + name + "-"))
		Expect(field(work.done)).To(BeEmpty())

		release()
		Eventually(ctx, func() string { return field(work.done) }).ShouldNot(BeEmpty())
		Expect(asRoot(ctx, "SELECT word FROM kept.kept")).To(Equal("as it was\n"))
	}
	Expect(kubectl(ctx, "get", "mysqlbackup", name, "--output=jsonpath={.status.kept}")).To(Equal("1"), "half a dump does not count")
}

// lockKept locks the table of kept until release is called.
func lockKept(ctx context.Context) (release func()) {
	GinkgoHelper()
	const sleepers = "SELECT id FROM performance_schema.processlist WHERE info = 'SELECT SLEEP(600)'"
	password := secret(ctx, "mysql-admin", "password")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// Ends with an error, as release kills it.
		_, _ = sql(ctx, "root", password, "LOCK TABLES kept.kept WRITE; SELECT SLEEP(600)")
	}()
	Eventually(ctx, func() string { return asRoot(ctx, sleepers) }).ShouldNot(BeEmpty())
	return func() {
		GinkgoHelper()
		asRoot(ctx, "KILL "+asRoot(ctx, sleepers))
		Eventually(ctx, ended).Should(BeClosed())
	}
}
