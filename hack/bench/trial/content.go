package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/harness"
)

const (
	// writers are how many requests are under way at once.
	writers = 8
	// requested is the annotation that asks for a run.
	requested = "ansible.sdk.operatorframework.io/reconcile-requested-at"
)

// Content is a role with the CRs that it is for.
type Content struct {
	Name string
	Kind schema.GroupKind
	Role string
	// roles is the directory of the role.
	roles string
	spec  map[string]any
	// free says that the spec may hold anything, so that any change of it is one.
	free bool
}

// Contents are what can be run: a role that does nothing, the reference role and that
// of MySQLCluster. root is the repository's directory.
func Contents(root string) (nothing, reference, mysql Content) {
	own := filepath.Join(root, "hack", "bench", "trial", "project", "roles")
	kind := func(name string) schema.GroupKind { return schema.GroupKind{Group: "bench.ensign.io", Kind: name} }
	return Content{"a role that does nothing", kind("Nothing"), "nothing", own, map[string]any{}, true},
		Content{"the reference role", kind("Reference"), "reference", own, map[string]any{"greeting": "hello"}, true},
		Content{
			"MySQLCluster", schema.GroupKind{Group: "myapp.myorg.tld", Kind: "MySQLCluster"}, "mysqlcluster", filepath.Join(root, "roles"),
			map[string]any{"mysqlAdminSecret": "mysql-admin", "mysqlReadersSecret": "mysql-readers"}, false,
		}
}

// Definitions are those of the kinds of all contents.
func Definitions(root string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	nothing, reference, _ := Contents(root)
	text, err := os.ReadFile(filepath.Join(root, "config", "crd", "bases", "myapp.myorg.tld_mysqlclusters.yaml"))
	mysql := &apiextensionsv1.CustomResourceDefinition{}
	if err := errors.Join(err, yaml.Unmarshal(text, mysql)); err != nil {
		return nil, fmt.Errorf("read the definition of MySQLCluster: %w", err)
	}
	return []*apiextensionsv1.CustomResourceDefinition{harness.Definition(nothing.Kind), harness.Definition(reference.Kind), mysql}, nil
}

// change is a merge patch that has a CR run again, with nothing to do in the cluster.
func (c Content) change(at time.Time) []byte {
	stamp := at.UTC().Format(time.RFC3339Nano)
	if c.free {
		return fmt.Appendf(nil, `{"spec":{"changed":%q}}`, stamp)
	}
	return fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, requested, stamp)
}

func (c Content) list() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(c.Kind.WithVersion("v1"))
	return list
}

// Furnish makes a namespace with what the contents need there.
func Furnish(ctx context.Context, c client.Client, namespace string) error {
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	for _, name := range []string{"mysql-admin", "mysql-readers"} {
		objects = append(objects, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{"username": "bench", "password": "bench"},
		})
	}
	for _, object := range objects {
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("furnish a namespace: %w", err)
		}
	}
	return nil
}

// Names are those of so many CRs. What belongs to a CR has its name, so that no two
// contents have the same.
func (c Content) Names(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%02d", c.Role, i)
	}
	return names
}

// Each calls f for each name, several at once.
func Each(ctx context.Context, names []string, f func(context.Context, string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, name := range names {
		group.Go(func() error { return f(ctx, name) })
	}
	return group.Wait()
}
