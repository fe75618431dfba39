//go:build node

package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// database is a MySQLCluster beside the sample. The images mysql:10.11 and mysql:11.8 have
// MariaDB's servers of these versions: of MySQL itself there is only one version to be had.
type database string

// newDatabase makes one, and puts things into it.
func newDatabase(ctx context.Context, name, version string) database {
	GinkgoHelper()
	d := database(name)
	Expect(api.Create(ctx, harness.Custom(schema.GroupKind{Group: "myapp.myorg.tld", Kind: "MySQLCluster"}, namespace, name, map[string]any{
		"mysqlAdminSecret": "mysql-admin", "mysqlReadersSecret": "mysql-readers", "size": "1Gi", "mysqlVersion": version,
	}))).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		kubectl(ctx, "delete", "mysqlcluster", name, "--ignore-not-found", "--timeout=3m")
	})
	d.succeeds(ctx)
	d.query(ctx, `CREATE DATABASE shop; USE shop;
		CREATE TABLE goods (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(80) CHARACTER SET utf8mb4, price DECIMAL(9,2), made DATETIME(6), more JSON, KEY (name));
		INSERT INTO goods (name, price, made, more) SELECT CONCAT('good ☃ ', seq), seq / 7, NOW(6), JSON_OBJECT('n', seq) FROM seq_1_to_5000;
		CREATE TABLE `+"`odd ``name`` $(PASSWORD) 'x'`"+` (a INT) ENGINE=MyISAM; INSERT INTO `+"`odd ``name`` $(PASSWORD) 'x'`"+` VALUES (1), (2);
		CREATE TABLE history (x INT) WITH SYSTEM VERSIONING; INSERT INTO history VALUES (1), (2); UPDATE history SET x = x + 1;
		CREATE TABLE parts (n INT, KEY (n)) PARTITION BY HASH (n) PARTITIONS 3; INSERT INTO parts SELECT seq FROM seq_1_to_100;
		CREATE VIEW dear AS SELECT * FROM goods WHERE price > 100;
		CREATE TABLE gone (a INT); CREATE VIEW broken AS SELECT * FROM gone; DROP TABLE gone;
		CREATE DEFINER = 'nobody'@'nowhere' VIEW foreign_view AS SELECT 1;
		CREATE PROCEDURE p() SELECT COUNT(*) FROM goods;
		CREATE TRIGGER t BEFORE INSERT ON goods FOR EACH ROW SET NEW.made = NOW(6);
		CREATE TABLE ticks (n INT PRIMARY KEY AUTO_INCREMENT); SET GLOBAL event_scheduler = ON;
		CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO INSERT INTO ticks VALUES ();
		CREATE TABLE written (n INT PRIMARY KEY);
		CREATE USER app@'%' IDENTIFIED BY 'an old password'; GRANT SELECT ON shop.* TO app@'%'`)
	return d
}

// digest is of all that nobody writes to, with what an account sees of it.
func (d database) digest(ctx context.Context) string {
	GinkgoHelper()
	const odd = "`odd ``name`` $(PASSWORD) 'x'`"
	app, err := d.sql(ctx, "app", "an old password", "SELECT COUNT(*), MAX(name), SUM(price) FROM shop.dear")
	Expect(err).NotTo(HaveOccurred())
	return app + d.query(ctx, "CHECKSUM TABLE shop.goods, shop.parts, shop."+odd+"; CALL shop.p(); SELECT * FROM shop."+odd+
		"; SELECT x FROM shop.history FOR SYSTEM_TIME ALL ORDER BY x; SHOW GRANTS FOR app@'%'; SHOW TRIGGERS FROM shop LIKE 'goods'")
}

func (d database) sql(ctx context.Context, user, password, statement string) (string, error) {
	c := command(ctx, "kubectl", "exec", "--stdin", string(d)+"-0", "--container=mysql", "--", "env", "MYSQL_PWD="+password, "mysql",
		"--no-defaults", "--default-character-set=utf8mb4", "--batch", "--skip-column-names", "--connect-timeout=10",
		"--host="+string(d)+"-writer."+namespace+".svc", "--user="+user)
	c.Stdin = strings.NewReader(statement)
	output, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	return string(output), nil
}

// query sends statements as the administrator, which have to succeed once the server is reached.
func (d database) query(ctx context.Context, statements string) (output string) {
	GinkgoHelper()
	password := secret(ctx, "mysql-admin", "password")
	Eventually(ctx, func() error { _, err := d.sql(ctx, "root", password, "SELECT 1"); return err }, time.Minute).Should(Succeed())
	output, err := d.sql(ctx, "root", password, statements)
	Expect(err).NotTo(HaveOccurred())
	return output
}

func (d database) asksFor(ctx context.Context, version string) {
	GinkgoHelper()
	kubectl(ctx, "patch", "mysqlcluster", string(d), "--type=merge", "--patch", fmt.Sprintf(`{"spec":{"mysqlVersion":%q}}`, version))
}

func (d database) succeeds(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		cr := custom(ctx, "MySQLCluster", string(d))
		isSuccessful(g, cr)
		g.Expect(harness.ConditionOf(cr, "Upgrading").Status).NotTo(Equal("True"))
		g.Expect(cr.Object["status"]).To(HaveKeyWithValue("ready", true))
	}).Should(Succeed())
}

// fails waits until a run of the present spec has failed, and returns why.
func (d database) fails(ctx context.Context, part string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		cr := custom(ctx, "MySQLCluster", string(d))
		failure := harness.ConditionOf(cr, "Failure")
		g.Expect(failure.Message).To(ContainSubstring(part))
		g.Expect(failure.Generation).To(Equal(cr.GetGeneration()))
		g.Expect(failure.Status).To(Equal("True"))
		g.Expect(cr.Object["status"]).To(HaveKeyWithValue("ready", true))
	}).Should(Succeed())
}

func (d database) serverPod(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: string(d) + "-0"}, pod)).To(Succeed())
	return pod
}

// hasOnly expects the server of a version, one directory of data on its volume, and no Job.
func (d database) hasOnly(ctx context.Context, version, directory string) {
	GinkgoHelper()
	Expect(d.query(ctx, "SELECT @@version")).To(HavePrefix(version + "."))
	Expect(d.serverPod(ctx).Spec.Containers[0].Image).To(Equal("mysql:" + version))
	claim := &corev1.PersistentVolumeClaim{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "data-" + string(d) + "-0"}, claim)).To(Succeed())
	volume := &corev1.PersistentVolume{}
	Expect(api.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume)).To(Succeed())
	Expect(volume.Spec.Local).NotTo(BeNil())
	entries, err := os.ReadDir(volume.Spec.Local.Path)
	Expect(err).NotTo(HaveOccurred())
	Expect(entries).To(ConsistOf(HaveField("Name()", filepath.Base(directory))))
	jobs := &batchv1.JobList{}
	Expect(api.List(ctx, jobs, client.InNamespace(namespace), client.MatchingLabels{"mysqlcluster-upgrade": string(d)})).To(Succeed())
	Expect(jobs.Items).To(BeEmpty())
}

// writes inserts numbers until the server refuses, and returns those that it has acknowledged.
func (d database) writes(ctx context.Context) (acknowledged func() int) {
	GinkgoHelper()
	password := secret(ctx, "mysql-admin", "password")
	last, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := d.sql(ctx, "root", password, fmt.Sprintf("INSERT INTO shop.written VALUES (%d)", last+1)); err != nil {
				return
			}
			last++
		}
	}()
	return func() int {
		GinkgoHelper()
		Eventually(ctx, ended).Should(BeClosed())
		return last
	}
}

func upgradesItsData(ctx context.Context) {
	d := newDatabase(ctx, "upgraded", "10.11")
	before := d.digest(ctx)
	acknowledged := d.writes(ctx)
	d.asksFor(ctx, "11.8")
	d.succeeds(ctx)
	d.hasOnly(ctx, "11.8", "mysql-11.8")
	Expect(d.digest(ctx)).To(Equal(before))
	By("with each write that was acknowledged before the server stopped")
	Expect(strings.Count(d.query(ctx, "SELECT n FROM shop.written"), "\n")).To(BeNumerically(">=", acknowledged()))
	By("with the event active again")
	ticks := "SELECT COUNT(*) FROM shop.ticks"
	d.query(ctx, "SET GLOBAL event_scheduler = ON")
	was := d.query(ctx, ticks)
	Eventually(ctx, func() string { return d.query(ctx, ticks) }).ShouldNot(Equal(was))
	By("refusing the way back")
	output, err := command(ctx, "kubectl", "patch", "mysqlcluster", string(d), "--type=merge", "--patch", `{"spec":{"mysqlVersion":"10.11"}}`).CombinedOutput()
	Expect(err).To(HaveOccurred())
	Expect(string(output)).To(And(ContainSubstring("spec.mysqlVersion"), ContainSubstring("the server has run version 11.8")))
}

func keepsTheOldVersion(ctx context.Context) {
	d := newDatabase(ctx, "kept", "11.8")
	before := d.digest(ctx)
	By("an image whose server does not start, after the last write")
	acknowledged := d.writes(ctx)
	d.asksFor(ctx, "12.0")
	d.fails(ctx, "unknown variable 'an-option-that-has-gone=1'")
	Expect(d.digest(ctx)).To(Equal(before))
	Expect(strings.Count(d.query(ctx, "SELECT n FROM shop.written"), "\n")).To(BeNumerically(">=", acknowledged()))

	By("not stopping the server again while the spec is the same")
	pod, requestedAt := d.serverPod(ctx), time.Now().Format(time.RFC3339Nano)
	kubectl(ctx, "annotate", "mysqlcluster", string(d), "--overwrite", requested+"="+requestedAt)
	Eventually(ctx, func(g Gomega) {
		cr := custom(ctx, "MySQLCluster", string(d))
		g.Expect(cr.Object["status"]).To(HaveKeyWithValue("reconcileRequestedAt", requestedAt))
		g.Expect(harness.ConditionOf(cr, "Running").Reason).NotTo(Equal("Running"))
	}).Should(Succeed())
	Expect(d.serverPod(ctx).UID).To(Equal(pod.UID))

	By("an image with an older server than its tag says")
	d.asksFor(ctx, "12.1")
	d.fails(ctx, "which is older than 11.8.")
	Expect(d.digest(ctx)).To(Equal(before))

	By("a prepared transaction, which another version may not find")
	d.query(ctx, "XA START 'x'; INSERT INTO shop.written VALUES (100000); XA END 'x'; XA PREPARE 'x'")
	d.asksFor(ctx, "12.0")
	d.fails(ctx, "prepared XA transactions")
	d.query(ctx, "XA ROLLBACK 'x'")

	By("giving up")
	d.asksFor(ctx, "11.8")
	d.succeeds(ctx)
	d.hasOnly(ctx, "11.8", "mysql")
	Expect(d.digest(ctx)).To(Equal(before))
}

// moments are those of an upgrade at which something happens to it: each tells whether it has come so far.
var moments = []struct {
	name string
	come func(context.Context, database) bool
}{
	{"while the image is tried", func(ctx context.Context, d database) bool { return d.upgrading(ctx) == "Checking" }},
	{"while the server stops", func(ctx context.Context, d database) bool { return d.upgrading(ctx) == "Stopping" }},
	{"while the data are copied", func(ctx context.Context, d database) bool { return d.step(ctx, "copy") }},
	{"while the copy is upgraded", func(ctx context.Context, d database) bool { return d.step(ctx, "upgrade") }},
	{"while the new server starts", func(ctx context.Context, d database) bool { return d.upgrading(ctx) == "Starting" }},
	{"while the other data are removed", func(ctx context.Context, d database) bool { return d.step(ctx, "clean") }},
}

// accidents are what happens.
var accidents = map[string]func(context.Context, database){
	"the operator is killed": func(ctx context.Context, _ database) {
		pod := managers(ctx)[0].Name
		killsManager(ctx, pod)
		// Another pod starts at once, where a container would wait longer each time.
		kubectl(ctx, "delete", "pod", pod, "--namespace="+operatorSpace, "--force", "--grace-period=0")
	},
	"the server and the Jobs' pods are killed": func(ctx context.Context, d database) {
		for _, label := range []string{"mysql-cluster=", "mysqlcluster-upgrade="} {
			kubectl(ctx, "delete", "pods", "--selector="+label+string(d), "--force", "--grace-period=0", "--wait=false")
		}
	},
	"somebody starts the server": func(ctx context.Context, d database) {
		kubectl(ctx, "scale", "statefulset", string(d), "--replicas=1")
	},
}

// outlivesAccidents are specs of all accidents at all moments.
func outlivesAccidents() {
	for accident, happens := range accidents {
		for _, moment := range moments {
			It("ends an upgrade whole where "+accident+" "+moment.name, Label("long"), func(ctx context.Context) {
				d := newDatabase(ctx, "accidents", "10.11")
				before := d.digest(ctx)
				acknowledged := d.writes(ctx)
				d.asksFor(ctx, "11.8")
				Eventually(ctx, func() bool { return moment.come(ctx, d) }).WithPolling(20 * time.Millisecond).Should(BeTrue())
				happens(ctx, d)
				d.succeeds(ctx)
				d.hasOnly(ctx, "11.8", "mysql-11.8")
				Expect(d.digest(ctx)).To(Equal(before))
				Expect(strings.Count(d.query(ctx, "SELECT n FROM shop.written"), "\n")).To(BeNumerically(">=", acknowledged()))
			})
		}
	}
}

func (d database) upgrading(ctx context.Context) string {
	return harness.ConditionOf(custom(ctx, "MySQLCluster", string(d)), "Upgrading").Reason
}

// step reports whether a container of an upgrade's Job is running or has run.
func (d database) step(ctx context.Context, container string) bool {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(api.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"mysqlcluster-upgrade": string(d)})).To(Succeed())
	for _, pod := range pods.Items {
		for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			if status.Name == container && (status.State.Running != nil || status.State.Terminated != nil) {
				return true
			}
		}
	}
	return false
}
