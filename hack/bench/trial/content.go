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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/test/harness"
)

const (
	// writers are how many requests are under way at once.
	writers = 8
	// served is far beyond what it takes until a new kind is.
	served = time.Minute
	// requested is the annotation that asks for a run.
	requested = "ansible.sdk.operatorframework.io/reconcile-requested-at"
)

// Content is a role with the CRs that it is for.
type Content struct {
	Name string
	Kind schema.GroupVersionKind
	Role string
	// Roles is the directory of the role.
	Roles string
	spec  map[string]any
	// free says that the spec may hold anything, so that any change of it is one.
	free bool
}

// Contents are what can be run: a role that does nothing, the reference role and that
// of MySQLCluster. root is the repository's directory.
func Contents(root string) (nothing, reference, mysql Content) {
	own := filepath.Join(root, "hack", "bench", "trial", "project", "roles")
	kind := func(name string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "bench.ensign.io", Version: "v1", Kind: name}
	}
	nothing = Content{Name: "a role that does nothing", Kind: kind("Nothing"), Role: "nothing", Roles: own, free: true}
	reference = Content{
		Name: "the reference role", Kind: kind("Reference"), Role: "reference", Roles: own, free: true,
		spec: map[string]any{"greeting": "hello"},
	}
	mysql = Content{
		Name: "MySQLCluster", Kind: schema.GroupVersionKind{Group: "myapp.myorg.tld", Version: "v1", Kind: "MySQLCluster"},
		Role: "mysqlcluster", Roles: filepath.Join(root, "roles"),
		spec: map[string]any{"mysqlAdminSecret": "mysql-admin", "mysqlReadersSecret": "mysql-readers"},
	}
	return nothing, reference, mysql
}

// change is a merge patch that has a CR run again, with nothing to do in the cluster.
func (c Content) change(at time.Time) []byte {
	stamp := at.UTC().Format(time.RFC3339Nano)
	if c.free {
		return fmt.Appendf(nil, `{"spec":{"changed":%q}}`, stamp)
	}
	return fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, requested, stamp)
}

// object is a CR of the content, without its spec unless it is to be created.
func (c Content) object(namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(c.Kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func (c Content) list() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(c.Kind)
	return list
}

// variables are the bytes that Ansible gets for a CR, from us and from the plain runs.
func (c Content) variables(object *unstructured.Unstructured) ([]byte, error) {
	variables, err := extravars.Build(object.Object, extravars.Options{GVK: c.Kind, SnakeCase: true, MarkUnsafe: true})
	if err != nil {
		return nil, err
	}
	return variables.Encode()
}

// Define lets the API server serve the kinds of all contents.
func Define(ctx context.Context, c client.Client, root string) error {
	nothing, reference, mysql := Contents(root)
	text, err := os.ReadFile(filepath.Join(root, "config", "crd", "bases", "myapp.myorg.tld_mysqlclusters.yaml"))
	if err != nil {
		return fmt.Errorf("read the definition of MySQLCluster: %w", err)
	}
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &definition.Object); err != nil {
		return fmt.Errorf("read the definition of MySQLCluster: %w", err)
	}
	for _, object := range []client.Object{
		harness.Definition(nothing.Kind.GroupKind()), harness.Definition(reference.Kind.GroupKind()), definition,
	} {
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("define a kind: %w", err)
		}
	}
	for _, content := range []Content{nothing, reference, mysql} {
		var last error
		err := wait.PollUntilContextTimeout(ctx, interval, served, true, func(ctx context.Context) (bool, error) {
			last = c.List(ctx, content.list())
			return last == nil, nil
		})
		if err != nil {
			return errors.Join(fmt.Errorf("wait for %s to be served: %w", content.Kind.Kind, err), last)
		}
	}
	return nil
}

// Furnish makes a namespace with what the contents need there.
func Furnish(ctx context.Context, c client.Client, namespace string) error {
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return fmt.Errorf("make a namespace: %w", err)
	}
	for name, data := range map[string]map[string]string{
		"mysql-admin": {"password": "bench"}, "mysql-readers": {"username": "bench", "password": "bench"},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: data}
		if err := c.Create(ctx, secret); err != nil {
			return fmt.Errorf("make a Secret: %w", err)
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

// create makes the CRs that are not there yet.
func (c Content) create(ctx context.Context, to client.Client, namespace string, names []string) error {
	return parallel(ctx, names, func(ctx context.Context, name string) error {
		object := c.object(namespace, name)
		object.Object["spec"] = c.spec
		if c.spec == nil {
			object.Object["spec"] = map[string]any{}
		}
		if err := to.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s %s: %w", c.Kind.Kind, name, err)
		}
		return nil
	})
}

func parallel(ctx context.Context, names []string, f func(context.Context, string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, name := range names {
		group.Go(func() error { return f(ctx, name) })
	}
	return group.Wait()
}
