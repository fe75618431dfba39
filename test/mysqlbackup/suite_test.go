package mysqlbackup

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
	"github.com/ensign-operator/ensign/test/mariadb"
)

const group = "myapp.myorg.tld"

var (
	ground      *site.Ground
	api         client.Client
	clusterKind = schema.GroupKind{Group: group, Kind: "MySQLCluster"}
	backupKind  = schema.GroupKind{Group: group, Kind: "MySQLBackup"}
	restoreKind = schema.GroupKind{Group: group, Kind: "MySQLRestore"}
)

func TestMySQLBackup(t *testing.T) {
	site.Run(t, "mysqlbackup", harness.WaitTimeout, 50*time.Millisecond)
}

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, controlplane.Options{})
	api = ground.Client
	var kinds []*apiextensionsv1.CustomResourceDefinition
	for _, plural := range []string{"mysqlclusters", "mysqlbackups", "mysqlrestores"} {
		kind := &apiextensionsv1.CustomResourceDefinition{}
		text, err := os.ReadFile(filepath.Join(ground.Root, "config", "crd", "bases", group+"_"+plural+".yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(yaml.Unmarshal(text, kind)).To(Succeed())
		kinds = append(kinds, kind)
	}
	ground.Define(ctx, kinds...)
	tools := filepath.Join(ground.Root, ".dev", "mariadb", "bin")
	Expect(os.Setenv("PATH", tools+":"+os.Getenv("PATH"))).To(Succeed())
})

// place is a site with a server, and a directory for dumps.
type place struct {
	*site.Site
	server *mariadb.Server
	dumps  string
}

// newPlace starts a server and a manager that watches both kinds.
func newPlace(ctx context.Context) *place {
	GinkgoHelper()
	p := &place{}
	var err error
	p.server, err = mariadb.Start(ctx, mariadb.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(p.server.Stop()).To(Succeed()) })
	p.Site = ground.Site(ctx, map[string]string{"watches.yaml": watches()})
	for _, name := range []string{"playbooks", "roles"} {
		Expect(os.Symlink(filepath.Join(ground.Root, name), filepath.Join(p.Options.Project, name))).To(Succeed())
	}
	p.dumps = filepath.Join(p.Dir, "dumps")
	Expect(os.Mkdir(p.dumps, 0o700)).To(Succeed())
	p.Options.Env = append(p.Options.Env, "MYSQLBACKUP_DIRECTORY="+p.dumps, "MYSQLBACKUP_RESTORE_BESIDE=true")
	p.Options.Args = append(p.Options.Args, "--max-backoff=2s", "--ansible-log-events=Everything", "--ansible-verbosity=2")
	p.addCluster(ctx, "db", p.server.Port)
	return p
}

// begin starts a manager, which ends with the spec.
func (p *place) begin(ctx context.Context) { p.Start(ctx, backupKind.Kind, restoreKind.Kind) }

// watches are those of this suite's kinds, as the operator has them.
func watches() string {
	GinkgoHelper()
	var all, ours []map[string]any
	text, err := os.ReadFile(filepath.Join(ground.Root, "watches.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.Unmarshal(text, &all)).To(Succeed())
	for _, watch := range all {
		if kind := watch["kind"]; kind == backupKind.Kind || kind == restoreKind.Kind {
			ours = append(ours, watch)
		}
	}
	Expect(ours).To(HaveLen(2))
	text, err = yaml.Marshal(ours)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// addCluster makes a MySQLCluster whose server is ready at the port.
func (p *place) addCluster(ctx context.Context, name string, port int) {
	GinkgoHelper()
	cluster := harness.Custom(clusterKind, p.Namespace, name, map[string]any{
		"mysqlAdminSecret": name + "-admin", "endpoint": map[string]any{"host": "127.0.0.1", "port": int64(port)},
	})
	p.Create(ctx, cluster, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name + "-admin", Labels: mariadb.SecretLabels()},
		StringData: map[string]string{"password": p.server.Password},
	})
	cluster.Object["status"] = map[string]any{"ready": true}
	Expect(api.Status().Update(ctx, cluster)).To(Succeed())
}

// backup makes a MySQLBackup of the cluster db, in the directory nightly.
func (p *place) backup(ctx context.Context, name string, spec map[string]any) *unstructured.Unstructured {
	GinkgoHelper()
	spec["cluster"] = map[string]any{"name": "db"}
	spec["storage"] = map[string]any{"directory": "nightly"}
	cr := harness.Custom(backupKind, p.Namespace, name, spec)
	p.Create(ctx, cr)
	return cr
}

// restore makes a MySQLRestore of the cluster db.
func (p *place) restore(ctx context.Context, name string, spec map[string]any) *unstructured.Unstructured {
	GinkgoHelper()
	spec["cluster"] = map[string]any{"name": "db"}
	cr := harness.Custom(restoreKind, p.Namespace, name, spec)
	p.Create(ctx, cr)
	return cr
}

// query sends statements to the server, which have to succeed.
func (p *place) query(ctx context.Context, statements string) string {
	GinkgoHelper()
	answer, err := p.server.Query(ctx, statements)
	Expect(err).NotTo(HaveOccurred())
	return answer
}

// files are the names of what a MySQLBackup has in its directory.
func (p *place) files(name string) []string {
	GinkgoHelper()
	entries, err := os.ReadDir(filepath.Join(p.dumps, p.Namespace, "nightly", name))
	if os.IsNotExist(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// again has the operator run for a CR, and waits for the result of that run.
func (p *place) again(ctx context.Context, cr *unstructured.Unstructured) {
	GinkgoHelper()
	before, err := p.ended(cr)()
	Expect(err).NotTo(HaveOccurred())
	patch := `{"metadata":{"annotations":{"ansible.sdk.operatorframework.io/reconcile-requested-at":"` + time.Now().Format(time.RFC3339Nano) + `"}}}`
	Expect(api.Patch(ctx, cr.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
	Eventually(p.ended(cr)).Should(BeNumerically(">", before))
}

// ended counts the runs of this manager that have ended, well or not.
func (p *place) ended(cr *unstructured.Unstructured) func() (int, error) {
	line := regexp.MustCompile(`run (succeeded|failed).*"cr": "` + cr.GetNamespace() + "/" + cr.GetName() + `"`)
	return func() (int, error) {
		text, err := p.Log()
		return len(line.FindAllString(text, -1)), err
	}
}

func status(ctx context.Context, cr *unstructured.Unstructured, fields ...string) any {
	GinkgoHelper()
	current := cr.DeepCopy()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(cr), current)).To(Succeed())
	value, _, err := unstructured.NestedFieldNoCopy(current.Object, append([]string{"status"}, fields...)...)
	Expect(err).NotTo(HaveOccurred())
	return value
}
