package mysqlcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
	"github.com/ensign-operator/ensign/test/mariadb"
)

var (
	ground *site.Ground
	k8s    client.WithWatch // an administrator's
	kind   = schema.GroupKind{Group: "myapp.myorg.tld", Kind: "MySQLCluster"}
)

func TestMySQLCluster(t *testing.T) {
	site.Run(t, "mysqlcluster", harness.WaitTimeout, 50*time.Millisecond)
}

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, controlplane.Options{})
	k8s = ground.Client
	paths, err := filepath.Glob(filepath.Join(ground.Root, "config", "crd", "bases", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		text, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		definition := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.UnmarshalStrict(text, definition)).To(Succeed(), path)
		definitions = append(definitions, definition)
	}
	ground.Define(ctx, definitions...)
})

// operator is one of this repository's content, in a namespace that has the Secrets
// admin and readers.
type operator struct{ *site.Site }

func newOperator(ctx context.Context) *operator {
	GinkgoHelper()
	o := &operator{ground.Site(ctx, nil)}
	o.Options.Project = ground.Root
	o.Options.Args = append(o.Options.Args, "--max-backoff=2s")
	o.Options.Env = append(o.Options.Env, "ANSIBLE_GATHERING=explicit") // As config/manager has it.
	o.secret(ctx, "admin", map[string]string{"password": "not-a-servers"})
	o.secret(ctx, "readers", map[string]string{"username": "reader", "password": "reader"})
	return o
}

// start starts the next manager.
func (o *operator) start(ctx context.Context) {
	GinkgoHelper()
	o.Start(ctx, kind.Kind)
}

// secret makes a Secret, or changes it.
func (o *operator) secret(ctx context.Context, name string, data map[string]string) {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: name, Labels: mariadb.SecretLabels()}, StringData: data}
	if err := k8s.Create(ctx, secret); !apierrors.IsAlreadyExists(err) {
		Expect(err).NotTo(HaveOccurred())
		return
	}
	Expect(k8s.Update(ctx, secret)).To(Succeed())
}

// cluster returns one with a server of its own.
func (o *operator) cluster(name string) *unstructured.Unstructured {
	return harness.Custom(kind, o.Namespace, name, map[string]any{"mysqlAdminSecret": "admin", "mysqlReadersSecret": "readers", "size": "1Gi"})
}

// change patches the spec, as a person would.
func change(ctx context.Context, cr *unstructured.Unstructured, spec string, arguments ...any) error {
	patched := cr.DeepCopy()
	err := k8s.Patch(ctx, patched, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":`+spec+`}`, arguments...)))
	if err == nil {
		cr.Object = patched.Object
	}
	return err
}

// succeeds waits until the last run was for the CR's generation, and succeeded.
func (o *operator) succeeds(ctx context.Context, cr *unstructured.Unstructured) {
	GinkgoHelper()
	Eventually(ctx, o.Condition(cr, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Generation", cr.GetGeneration())))
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr)).To(Succeed())
}

// fails waits until a run of the CR's generation has failed, and returns why.
func (o *operator) fails(ctx context.Context, cr *unstructured.Unstructured) string {
	GinkgoHelper()
	var condition harness.Condition
	Eventually(ctx, func(ctx context.Context) (_ harness.Condition, err error) {
		condition, err = o.Condition(cr, "Failure")(ctx)
		return condition, err
	}).Should(And(HaveField("Status", "True"), HaveField("Generation", cr.GetGeneration())))
	return condition.Message
}

// status reads a field of the CR's status, nil where there is none.
func status(cr *unstructured.Unstructured, field string) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		current := cr.DeepCopy()
		err := k8s.Get(ctx, client.ObjectKeyFromObject(cr), current)
		value, _, _ := unstructured.NestedFieldNoCopy(current.Object, "status", field)
		return value, err
	}
}
