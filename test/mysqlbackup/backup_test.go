package mysqlbackup

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// odd is a name that means something to shells, to SQL, to Jinja and to Kubernetes.
const odd = "it's `odd`; \"$(PASSWORD)\" %_ {{ 1 }} --x=y é"

// quoted is odd as SQL has it.
const quoted = "`it's ``odd``; \"$(PASSWORD)\" %_ {{ 1 }} --x=y é`"

func lastName(ctx context.Context, cr *unstructured.Unstructured) string {
	GinkgoHelper()
	name, _ := status(ctx, cr, "lastBackup", "name").(string)
	return name
}

var _ = Describe("a MySQLBackup and a MySQLRestore", Ordered, func() {
	var (
		p        *place
		cr, back *unstructured.Unstructured
	)

	BeforeAll(func(ctx context.Context) {
		p = newPlace(ctx)
		p.query(ctx, "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, what BLOB); "+
			"INSERT INTO shop.orders VALUES (1, 'tea'), (2, x'00ff5c275c'); CREATE VIEW shop.all_orders AS SELECT * FROM shop.orders; "+
			"CREATE EVENT shop.hourly ON SCHEDULE EVERY 1 HOUR DO DELETE FROM shop.orders WHERE id > 100; "+
			"CREATE FUNCTION shop.twice (n INT) RETURNS INT DETERMINISTIC RETURN n * 2; "+
			"CREATE DATABASE "+quoted+"; CREATE TABLE "+quoted+".t (n INT); INSERT INTO "+quoted+".t VALUES (7)")
		p.begin(ctx)
	})

	It("makes a dump of all databases, and says so", func(ctx context.Context) {
		cr = p.backup(ctx, "all", map[string]any{})
		Expect(p.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"), "the reason")
		name := lastName(ctx, cr)
		Expect(name).To(MatchRegexp(`^\d{8}T\d{6}Z$`))
		Expect(p.files("all")).To(ConsistOf(name + ".sql"))
		Expect(status(ctx, cr, "lastBackup", "databases")).To(ConsistOf("shop", odd))
		Expect(status(ctx, cr, "kept")).To(BeEquivalentTo(1))
		path := filepath.Join(p.dumps, p.Namespace, "nightly", "all")
		file, err := os.Stat(filepath.Join(path, name+".sql"))
		Expect(err).NotTo(HaveOccurred())
		Expect(status(ctx, cr, "lastBackup", "bytes")).To(BeEquivalentTo(file.Size()))
		Expect(file.Mode()).To(BeEquivalentTo(0o600))
		directory, err := os.Stat(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(directory.Mode().Perm()).To(BeEquivalentTo(0o700))
		p.Settles(cr, 1)
	})

	It("makes no other before it is due", func(ctx context.Context) {
		p.again(ctx, cr)
		changesNothing(ctx, p, cr)
	})

	It("restores lost data, and leaves other databases alone", func(ctx context.Context) {
		p.query(ctx, "DROP DATABASE shop; DROP DATABASE "+quoted+"; CREATE DATABASE shop; CREATE TABLE shop.later (n INT); "+
			"CREATE DATABASE other; CREATE TABLE other.t (n INT); INSERT INTO other.t VALUES (3)")
		back = p.restore(ctx, "back", map[string]any{"backup": "all"})
		Expect(p.Outcome(ctx, back)).To(HaveField("Reason", "Successful"))
		Expect(p.query(ctx, "SELECT id, HEX(what) FROM shop.all_orders ORDER BY id; SELECT shop.twice(4); SELECT n FROM "+quoted+".t; SELECT n FROM other.t; "+
			"SELECT event_name FROM information_schema.events; SHOW TABLES FROM shop LIKE 'later'")).To(Equal("1\t746561\n2\t00FF5C275C\n8\n7\n3\nhourly"))
		Expect(status(ctx, back, "restored", "dump")).To(Equal(lastName(ctx, cr)))
	})

	It("does neither again, also after a restart", func(ctx context.Context) {
		p.query(ctx, "DELETE FROM shop.orders")
		p.again(ctx, back)
		Expect(p.Stop()).To(Succeed())
		p.begin(ctx)
		p.again(ctx, cr)
		changesNothing(ctx, p, cr)
		p.again(ctx, back)
		changesNothing(ctx, p, back)
		Expect(p.files("all")).To(ConsistOf(HaveSuffix("Z.sql"), ContainSubstring(".sql.restored-")))

		By("not even where the restore's status was lost")
		patchStatus(ctx, back, `{"restored":null}`)
		p.again(ctx, back)
		Eventually(ctx, func() any { return status(ctx, back, "restored", "dump") }).Should(Equal(lastName(ctx, cr)))
		Expect(p.query(ctx, "SELECT COUNT(*) FROM shop.orders")).To(Equal("0"))

		By("telling no password")
		expectNoPassword(ctx, p)

		By("keeping the dumps when the backup is deleted")
		Expect(api.Delete(ctx, cr.DeepCopy())).To(Succeed())
		ground.Gone(ctx, cr)
		Expect(p.files("all")).NotTo(BeEmpty())
	})
})

// changesNothing expects that a CR's last run found nothing to do.
func changesNothing(ctx context.Context, p *place, cr *unstructured.Unstructured) {
	GinkgoHelper()
	Eventually(ctx, p.Condition(cr, "Successful")).Should(HaveField("Result", HaveKeyWithValue("changed", BeEquivalentTo(0))))
}

// expectNoPassword looks everywhere but in the Secret: the log, all files, objects, Events.
func expectNoPassword(ctx context.Context, p *place) {
	GinkgoHelper()
	leak := ContainSubstring(p.server.Password)
	text, err := p.Log()
	Expect(err).NotTo(HaveOccurred())
	Expect(text).NotTo(leak, "the log")
	Expect(filepath.WalkDir(p.Dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		Expect(string(content)).NotTo(leak, path)
		return err
	})).To(Succeed())
	for _, kind := range []schema.GroupVersionKind{backupKind.WithVersion("v1"), restoreKind.WithVersion("v1"), eventsv1.SchemeGroupVersion.WithKind("Event")} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		Expect(api.List(ctx, list, client.InNamespace(p.Namespace))).To(Succeed())
		objects, err := list.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		Expect(list.Items).NotTo(BeEmpty(), kind.Kind)
		Expect(string(objects)).NotTo(leak, kind.Kind)
	}
}
