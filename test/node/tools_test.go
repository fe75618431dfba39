//go:build node

package node

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

const (
	// sample is the MySQLCluster of config/samples, in this namespace.
	sample    = "mysqlcluster-sample"
	namespace = "default"
	requested = "ansible.sdk.operatorframework.io/reconcile-requested-at"
)

// command is a program of the machine, at the repository's root.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = root
	return c
}

// run returns what a program prints; it has to succeed.
func run(ctx context.Context, name string, args ...string) string {
	GinkgoHelper()
	output, err := command(ctx, name, args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s %s: %s", name, strings.Join(args, " "), output)
	return string(output)
}

func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return run(ctx, "kubectl", args...)
}

// rollOut waits until the operator's Deployment is as it was last told.
func rollOut(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "rollout", "status", "deployment/"+deployment, "--namespace="+operatorSpace, "--timeout=4m")
}

// patch changes the operator's Deployment by a strategic patch, and waits for it. The
// change is undone after the spec.
func patch(ctx context.Context, text string) {
	GinkgoHelper()
	kubectl(ctx, "patch", "deployment", deployment, "--namespace="+operatorSpace, "--patch", text)
	DeferCleanup(func(ctx context.Context) {
		kubectl(ctx, "rollout", "undo", "deployment/"+deployment, "--namespace="+operatorSpace)
		rollOut(ctx)
	})
	rollOut(ctx)
}

// custom reads a custom resource of this operator.
func custom(ctx context.Context, kind, name string) *unstructured.Unstructured {
	GinkgoHelper()
	cr := &unstructured.Unstructured{}
	cr.SetGroupVersionKind(schema.GroupVersionKind{Group: "myapp.myorg.tld", Version: "v1", Kind: kind})
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cr)).To(Succeed())
	return cr
}

// cluster reads the sample.
func cluster(ctx context.Context) *unstructured.Unstructured {
	GinkgoHelper()
	return custom(ctx, "MySQLCluster", sample)
}

// isSuccessful expects that a CR's last run was for its generation, and succeeded.
func isSuccessful(g Gomega, cr *unstructured.Unstructured) {
	for condition, status := range map[string]string{"Successful": "True", "Failure": "False"} {
		c := harness.ConditionOf(cr, condition)
		g.Expect(c.Status).To(Equal(status), "%s of %s: %s", condition, cr.GetName(), c.Message)
		g.Expect(c.Generation).To(Equal(cr.GetGeneration()))
	}
}

// changePort gives the server another port, and waits until the operator is done.
func changePort(ctx context.Context, port int64) {
	GinkgoHelper()
	kubectl(ctx, "patch", "mysqlcluster", sample, "--type=merge", "--patch", fmt.Sprintf(`{"spec":{"mysqlPort":%d}}`, port))
	Eventually(ctx, func(g Gomega) {
		cr := cluster(ctx)
		isSuccessful(g, cr)
		endpoint, _, _ := unstructured.NestedString(cr.Object, "status", "endpoint")
		g.Expect(endpoint).To(HaveSuffix(fmt.Sprintf(":%d", port)))
	}).Should(Succeed())
}

// runAgain has the operator run the sample's content once more, and waits for its end.
func runAgain(ctx context.Context) {
	GinkgoHelper()
	runAgainFor(ctx, "MySQLCluster", sample)
}

// runAgainFor does so for any custom resource, and returns the counts of the run's tasks.
func runAgainFor(ctx context.Context, kind, name string) map[string]any {
	GinkgoHelper()
	result := func() map[string]any { return harness.ConditionOf(custom(ctx, kind, name), "Running").Result }
	before := result()["completion"]
	kubectl(ctx, "annotate", kind, name, "--overwrite", requested+"="+time.Now().Format(time.RFC3339Nano))
	Eventually(ctx, func(g Gomega) {
		g.Expect(result()["completion"]).NotTo(Or(BeNil(), Equal(before)))
		isSuccessful(g, custom(ctx, kind, name))
	}).Should(Succeed())
	return result()
}

// sql sends a statement to the writer: see sqlAt.
func sql(ctx context.Context, user, password, statement string) (string, error) {
	return sqlAt(ctx, sample+"-writer", user, password, statement)
}

// sqlAt has the server's own pod send a statement to a Service, as the account of a
// password. It returns what is printed, or the client's error.
func sqlAt(ctx context.Context, service, user, password, statement string) (string, error) {
	port, _, err := unstructured.NestedInt64(cluster(ctx).Object, "spec", "mysqlPort")
	if err != nil {
		return "", err
	}
	output, err := command(ctx, "kubectl", "exec", sample+"-0", "--container=mysql", "--", "env", "MYSQL_PWD="+password, "mysql",
		"--no-defaults", "--batch", "--skip-column-names", "--connect-timeout=10", "--host="+service+"."+namespace+".svc",
		fmt.Sprintf("--port=%d", port), "--user="+user, "--execute="+statement).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	return string(output), nil
}

func secret(ctx context.Context, name, key string) string {
	GinkgoHelper()
	s := &corev1.Secret{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s)).To(Succeed())
	Expect(s.Data).To(HaveKey(key))
	return string(s.Data[key])
}

// asRoot sends a statement as the administrator, which has to succeed. A server that has
// just started may need a moment until DNS knows its pod.
func asRoot(ctx context.Context, statement string) (output string) {
	GinkgoHelper()
	password := secret(ctx, "mysql-admin", "password")
	Eventually(ctx, func() (err error) {
		output, err = sql(ctx, "root", password, statement)
		return err
	}, time.Minute).Should(Succeed())
	return output
}
