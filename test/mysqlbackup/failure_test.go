package mysqlbackup

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("a MySQLBackup", Label("long"), Ordered, ContinueOnFailure, func() {
	var p *place

	BeforeAll(func(ctx context.Context) {
		p = newPlace(ctx)
		p.query(ctx, "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY); INSERT INTO shop.orders VALUES (1)")
		p.begin(ctx)
	})

	It("makes one when the last is too old, or the spec has changed, and keeps as many as it says", func(ctx context.Context) {
		cr := p.backup(ctx, "few", map[string]any{"keep": int64(2), "databases": []any{"shop"}})
		Expect(p.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		first := lastName(ctx, cr)
		changes := []func(){
			func() { age(ctx, cr); p.again(ctx, cr) },
			func() { change(ctx, cr, `{"spec":{"interval":"36h"}}`) },
		}
		for _, another := range changes {
			before := lastName(ctx, cr)
			another()
			Eventually(ctx, func() string { return lastName(ctx, cr) }).Should(SatisfyAll(Not(BeEmpty()), Not(Equal(before))))
		}
		Expect(p.files("few")).To(HaveLen(2))
		Expect(p.files("few")).NotTo(ContainElement(first + ".sql"))
		Expect(p.files("few")).To(ContainElement(lastName(ctx, cr) + ".sql"))
		Expect(status(ctx, cr, "kept")).To(BeEquivalentTo(2))
	})

	It("comes again by itself when the next one is due", func(ctx context.Context) {
		cr := p.backup(ctx, "often", map[string]any{"interval": "10s", "keep": int64(1)})
		Expect(p.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		first := lastName(ctx, cr)
		Eventually(ctx, func() string { return lastName(ctx, cr) }).Should(Not(Equal(first)))
		Expect(api.Delete(ctx, cr)).To(Succeed())
	})

	It("keeps its dumps while the server is down, and goes on when it is back", func(ctx context.Context) {
		cr := p.backup(ctx, "away", map[string]any{})
		Expect(p.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		files := p.files("away")
		Expect(p.server.Halt()).To(Succeed())
		change(ctx, cr, `{"spec":{"keep":1}}`)
		Eventually(ctx, p.Condition(cr, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Message", ContainSubstring("Cannot log in to 127.0.0.1"))))
		Expect(p.files("away")).To(Equal(files))
		Expect(p.server.Restart(ctx)).To(Succeed())
		Eventually(ctx, p.Condition(cr, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Generation", int64(2))))
		Expect(p.files("away")).To(And(HaveLen(1), Not(Equal(files))))
	})

	It("says that the disk is full, and removes only the incomplete dump", func(ctx context.Context) {
		if os.Geteuid() != 0 {
			Skip("only root can mount a small file system")
		}
		directory := filepath.Join(p.dumps, p.Namespace, "nightly", "full")
		Expect(os.MkdirAll(directory, 0o700)).To(Succeed())
		Expect(syscall.Mount("tmpfs", directory, "tmpfs", 0, "size=64k,mode=0700")).To(Succeed())
		DeferCleanup(func() { Expect(syscall.Unmount(directory, syscall.MNT_DETACH)).To(Succeed()) })
		cr := p.backup(ctx, "full", map[string]any{"keep": int64(1)})
		Expect(p.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		files := p.files("full")
		p.query(ctx, "CREATE TABLE shop.big (what LONGBLOB); INSERT INTO shop.big VALUES (REPEAT('x', 200000))")
		age(ctx, cr)
		p.again(ctx, cr)
		failure := Eventually(ctx, p.Condition(cr, "Failure"))
		failure.Should(And(HaveField("Status", "True"), HaveField("Message", MatchRegexp("(?i)no space left"))))
		Eventually(ctx, func() []string { return p.files("full") }).Should(Equal(files))
		Expect(lastName(ctx, cr) + ".sql").To(Equal(files[0]))
		Expect(syscall.Mount("tmpfs", directory, "tmpfs", syscall.MS_REMOUNT, "size=4m")).To(Succeed())
		Eventually(ctx, func() string { return lastName(ctx, cr) + ".sql" }).Should(Not(Equal(files[0])))
		Expect(p.files("full")).To(ConsistOf(lastName(ctx, cr) + ".sql"))
		p.query(ctx, "DROP TABLE shop.big")
	})

	DescribeTable("says what is wrong with", func(ctx context.Context, name string, spec map[string]any, want string) {
		cr := p.backup(ctx, name, spec)
		Expect(p.Outcome(ctx, cr)).To(HaveField("Message", ContainSubstring(want)))
		Expect(p.files(name)).To(BeEmpty())
		Expect(api.Delete(ctx, cr)).To(Succeed())
	},
		Entry("a database that does not exist", "absent", map[string]any{"databases": []any{"shop", "nothing"}}, `no database that is named "nothing"`),
		Entry("a name that would leave the option list", "options", map[string]any{"databases": []any{"--all-databases"}}, `no database that is named "--all-databases"`),
	)

	DescribeTable("is refused by the API server with", func(ctx context.Context, spec map[string]any, want string) {
		all := map[string]any{"cluster": map[string]any{"name": "db"}, "storage": map[string]any{"directory": "nightly"}}
		maps.Copy(all, spec)
		Expect(api.Create(ctx, harness.Custom(backupKind, p.Namespace, "refused", all))).To(MatchError(And(ContainSubstring(want), Not(ContainSubstring("evaluating rule")))))
	},
		Entry("two places", map[string]any{"storage": map[string]any{"directory": "a", "persistentVolumeClaim": "b"}}, "exactly one of"),
		Entry("no place", map[string]any{"storage": map[string]any{}}, "exactly one of"),
		Entry("a path", map[string]any{"storage": map[string]any{"directory": "../up"}}, "storage.directory"),
		Entry("the server's own database", map[string]any{"databases": []any{"MySQL"}}, "a database of the server itself"),
		Entry("a line break in a name", map[string]any{"databases": []any{"a\nb"}}, "databases[0]"),
		Entry("an interval that is too short", map[string]any{"interval": "9s"}, "from 10s"),
		Entry("an interval that is a word", map[string]any{"interval": "daily"}, "from 10s"),
		Entry("an interval that is longer than durations are", map[string]any{"interval": "99999999999999h"}, "from 10s"),
		Entry("no interval", map[string]any{"interval": ""}, "from 10s"),
	)

	It("makes no dump beside a restore that has not ended, which says why", func(ctx context.Context) {
		cr := p.backup(ctx, "beside", map[string]any{})
		Expect(p.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		half := p.files("beside")[0]
		path := filepath.Join(p.dumps, p.Namespace, "nightly", "beside", half)
		whole, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(path, whole[:len(whole)/2], 0o600)).To(Succeed())
		restore := p.restore(ctx, "stuck", map[string]any{"backup": "beside"})
		Expect(p.Outcome(ctx, restore)).To(HaveField("Message", ContainSubstring("is not complete; nothing was changed")))
		Expect(p.query(ctx, "SELECT COUNT(*) FROM shop.orders")).To(Equal("1"))
		change(ctx, cr, `{"spec":{"keep":1}}`)
		Eventually(ctx, p.Condition(cr, "Failure")).Should(HaveField("Message", ContainSubstring("MySQLRestore stuck of MySQLCluster db has begun and not ended")))
		Expect(p.files("beside")).To(Equal([]string{half}))
		By("going on when it is gone")
		Expect(api.Delete(ctx, restore)).To(Succeed())
		Eventually(ctx, p.Condition(cr, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Generation", int64(2))))
		Expect(p.files("beside")).To(And(HaveLen(1), Not(ContainElement(half))))
	})

	It("is named by a restore that cannot find it or its dump", func(ctx context.Context) {
		lost := p.restore(ctx, "lost", map[string]any{"backup": "never"})
		Expect(p.Outcome(ctx, lost)).To(HaveField("Message", ContainSubstring("Could not find requested MySQLBackup never in namespace "+p.Namespace)))
		old := p.restore(ctx, "old", map[string]any{"backup": "beside", "dump": "20200101T000000Z"})
		Expect(p.Outcome(ctx, old)).To(HaveField("Message", ContainSubstring("dump 20200101T000000Z does not exist")))
		Expect(api.Patch(ctx, old, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"dump":"20210101T000000Z"}}`)))).
			To(MatchError(ContainSubstring("because it restores once")))
	})

	It("is refused where nobody set a directory", func(ctx context.Context) {
		Expect(p.Stop()).To(Succeed())
		env := p.Options.Env
		p.Options.Env = slices.DeleteFunc(slices.Clone(env), func(v string) bool { return v == "MYSQLBACKUP_DIRECTORY="+p.dumps })
		DeferCleanup(func() { p.Options.Env = env })
		p.begin(ctx)
		cr := p.backup(ctx, "nowhere", map[string]any{})
		Expect(p.Outcome(ctx, cr)).To(HaveField("Message", And(ContainSubstring("mysqlbackup_directory"), ContainSubstring("watches.yaml"))))
		Expect(api.Delete(ctx, cr)).To(Succeed())
	})
})

func change(ctx context.Context, cr *unstructured.Unstructured, patch string) {
	GinkgoHelper()
	Expect(api.Patch(ctx, cr.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

// age makes the last dump two days old, as far as the status says.
func age(ctx context.Context, cr *unstructured.Unstructured) {
	GinkgoHelper()
	patchStatus(ctx, cr, fmt.Sprintf(`{"lastBackup":{"time":%q}}`, time.Now().Add(-48*time.Hour).UTC().Format(time.RFC3339)))
}

func patchStatus(ctx context.Context, cr *unstructured.Unstructured, patch string) {
	GinkgoHelper()
	Expect(api.Status().Patch(ctx, cr.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"status":`+patch+`}`)))).To(Succeed())
}
