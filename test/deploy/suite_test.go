package deploy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// namespace and manager are names of config/default: the latter is that of the
// Deployment, of its account, and of the role with what the operator does.
const (
	namespace = "ensign-system"
	manager   = "ensign-manager"
	group     = "myapp.myorg.tld"
)

var (
	ground           *site.Ground
	k8s              client.WithWatch // an administrator's
	auditLog         string
	clusterKind      = schema.GroupKind{Group: group, Kind: "MySQLCluster"}
	endpointKind     = schema.GroupKind{Group: group, Kind: "MySQLEndpoint"}
	databaseKind     = schema.GroupKind{Group: group, Kind: "MySQLDatabase"}
	userKind         = schema.GroupKind{Group: group, Kind: "MySQLUser"}
	backupKind       = schema.GroupKind{Group: group, Kind: "MySQLBackup"}
	restoreKind      = schema.GroupKind{Group: group, Kind: "MySQLRestore"}
	clusterFinalizer = group + "/cluster-finalizer"
)

func TestDeploy(t *testing.T) {
	site.Run(t, "deploy", harness.WaitTimeout, 50*time.Millisecond)
}

var _ = BeforeSuite(func(ctx context.Context) {
	auditLog = filepath.Join(GinkgoT().TempDir(), "audit.jsonl")
	ground = site.Prepare(ctx, controlplane.Options{AdmitServiceAccounts: true, CheckOwnerReferences: true, AuditLog: auditLog})
	k8s = ground.Client
	Expect(os.Setenv("PATH", filepath.Join(ground.Root, ".dev", "mariadb", "bin")+":"+os.Getenv("PATH"))).To(Succeed())
})

// run runs make for the suite's cluster, and gives what it said. Arguments are the
// target and variables.
func run(ctx context.Context, args ...string) (string, error) {
	GinkgoHelper()
	command := exec.CommandContext(ctx, "make", append([]string{"--directory=" + ground.Root, "--no-print-directory"}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+ground.Cluster.Kubeconfig, "KUBECTL="+ground.Cluster.Kubectl)
	out, err := command.CombinedOutput()
	GinkgoWriter.Printf("make %v (%v)\n%s\n", args, err, out)
	return string(out), err
}

func runs(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := run(ctx, args...)
	Expect(err).NotTo(HaveOccurred(), out)
	return out
}

// rbac runs the command for this project, which has to end with the exit code.
func rbac(ctx context.Context, code int, args ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, filepath.Join(ground.Root, "bin", "ensign"), append([]string{"rbac"}, args...)...)
	command.Dir, command.Stderr = ground.Root, GinkgoWriter
	out, _ := command.Output() // The exit code says what is wrong.
	GinkgoWriter.Printf("ensign rbac %v\n%s\n", args, out)
	Expect(command.ProcessState.ExitCode()).To(Equal(code), string(out))
	return string(out)
}

func cluster(namespace, name string) *unstructured.Unstructured {
	return harness.Custom(clusterKind, namespace, name, map[string]any{"mysqlAdminSecret": "mysql-admin", "mysqlReadersSecret": "mysql-readers", "size": "2Gi"})
}

func endpoint(namespace, name, cluster string) *unstructured.Unstructured {
	return harness.Custom(endpointKind, namespace, name, map[string]any{"cluster": cluster, "configMap": name + "-connection"})
}
