//go:build node

package node

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// backsUpAndRestores loses a database and gets it back, by Jobs that use a claim.
func backsUpAndRestores(ctx context.Context) {
	odd := "`$(PASSWORD) ``it's`` \"odd\"`" // As testdata/backup.yaml has it.
	asRoot(ctx, "CREATE DATABASE "+odd+"; CREATE TABLE "+odd+".t (n INT); INSERT INTO "+odd+".t VALUES (7); "+
		"CREATE DATABASE aside; CREATE TABLE aside.t (n INT)")
	DeferCleanup(func(ctx context.Context) {
		kubectl(ctx, "delete", "-f", "test/node/testdata/restore.yaml", "-f", "test/node/testdata/backup.yaml", "--ignore-not-found")
		asRoot(ctx, "DROP DATABASE IF EXISTS "+odd+"; DROP DATABASE IF EXISTS aside")
	})
	field := func(kind, name, path string) func() string {
		return func() string {
			GinkgoHelper()
			return kubectl(ctx, "get", kind, name, "--output=jsonpath={"+path+"}")
		}
	}

	By("a dump")
	kubectl(ctx, "apply", "-f", "test/node/testdata/backup.yaml")
	Eventually(ctx, field("mysqlbackup", "nightly", ".status.lastBackup.name")).ShouldNot(BeEmpty())
	kubectl(ctx, "wait", "mysqlbackup/nightly", "--for=condition=Successful", "--timeout=1m")
	expectAModestJob(ctx)
	dump := field("mysqlbackup", "nightly", ".status.lastBackup.name")()

	By("the loss of its databases, and their return")
	asRoot(ctx, "DROP DATABASE kept; DROP DATABASE "+odd+"; INSERT INTO aside.t VALUES (3)")
	kubectl(ctx, "apply", "-f", "test/node/testdata/restore.yaml")
	Eventually(ctx, field("mysqlrestore", "after-the-accident", ".status.restored.dump")).Should(Equal(dump))
	Expect(asRoot(ctx, "SELECT word FROM kept.kept; SELECT n FROM "+odd+".t; SELECT n FROM aside.t")).To(Equal("as it was\n7\n3\n"))

	By("a Job that fails, which says why")
	lost := harness.Custom(schema.GroupKind{Group: "myapp.myorg.tld", Kind: "MySQLRestore"}, namespace, "lost", map[string]any{
		"cluster": map[string]any{"name": sample}, "backup": "nightly", "dump": "20200101T000000Z",
	})
	Expect(api.Create(ctx, lost)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(api.Delete(ctx, lost)).To(Succeed()) })
	Eventually(ctx, field("mysqlrestore", lost.GetName(), `.status.conditions[?(@.type=="Failure")].message`)).
		Should(ContainSubstring("dump 20200101T000000Z does not exist"))
}

// expectAModestJob expects that the backup's Job could run where Pod Security is
// restricted, and that nobody reads the password from it.
func expectAModestJob(ctx context.Context) {
	GinkgoHelper()
	jobs := &batchv1.JobList{}
	Expect(api.List(ctx, jobs, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/created-by": "mysqlbackup"})).To(Succeed())
	Expect(jobs.Items).NotTo(BeEmpty())
	password := secret(ctx, "mysql-admin", "password")
	for _, job := range jobs.Items {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "modest", Namespace: operatorSpace}, Spec: job.Spec.Template.Spec}
		Expect(api.Create(ctx, pod, client.DryRunAll)).To(Succeed())
		Expect(kubectl(ctx, "get", "job,pod", "--selector=batch.kubernetes.io/job-name="+job.Name, "--output=yaml")).NotTo(ContainSubstring(password))
		Expect(kubectl(ctx, "logs", "job/"+job.Name)).NotTo(ContainSubstring(password))
	}
	logs := kubectl(ctx, "logs", "--namespace="+operatorSpace, "deployment/"+deployment, "--container=manager", "--tail=-1")
	Expect(logs).To(ContainSubstring("mysqlbackup : Create the Job"))
	Expect(logs).NotTo(ContainSubstring(password))
}
