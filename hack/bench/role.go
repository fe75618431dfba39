package main

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
	requested  = "ansible.sdk.operatorframework.io/reconcile-requested-at"
	mysqlGroup = "myapp.myorg.tld"
)

// role is one that is run in each way, with the CRs that it is for.
type role struct {
	title string
	kind  schema.GroupKind
	name  string
	path  string // the directory of roles that has it
	spec  map[string]any
	// free says that the spec may hold anything, so that any change of it is one.
	free bool
	// rounds is how often it is run in each way; 0 is a role without which others do not run.
	rounds int
	// Goals of a warm run: of plain ansible-runner's wall time and CPU, and wall time in s. 0 is none.
	mostOfPlain, mostWall float64
}

// roles are one that does nothing, the reference role and that of MySQLCluster.
func (b *bench) roles() []role {
	own, n := filepath.Join(b.project(), "roles"), b.settings.rounds
	kind := func(name string) schema.GroupKind { return schema.GroupKind{Group: benchKind().Group, Kind: name} }
	return []role{
		{"a role that does nothing", kind("Nothing"), "nothing", own, map[string]any{}, true, n, 0, 0.12},
		{"the reference role", kind("Reference"), "reference", own, map[string]any{"greeting": "hello"}, true, n, 0.085, 0},
		{
			"MySQLCluster", schema.GroupKind{Group: mysqlGroup, Kind: "MySQLCluster"}, "mysqlcluster", filepath.Join(b.root, "roles"),
			map[string]any{"mysqlAdminSecret": "mysql-admin", "mysqlReadersSecret": "mysql-readers"}, false, max(1, n/2), 0.16, 0,
		},
	}
}

func (b *bench) reference() role { return b.roles()[1] }

// definitions are those of the kinds of all roles.
func (b *bench) definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	roles := b.roles()
	shipped, err := b.shipped("mysqlclusters")
	return append(shipped, harness.Definition(roles[0].kind), harness.Definition(roles[1].kind)), err
}

// shipped are definitions of the repository's operator, of kinds by their names in plural.
func (b *bench) shipped(plurals ...string) (definitions []*apiextensionsv1.CustomResourceDefinition, err error) {
	for _, plural := range plurals {
		text, err := os.ReadFile(filepath.Join(b.root, "config", "crd", "bases", mysqlGroup+"_"+plural+".yaml"))
		one := &apiextensionsv1.CustomResourceDefinition{}
		if err := errors.Join(err, yaml.Unmarshal(text, one)); err != nil {
			return nil, fmt.Errorf("read the definition of %s: %w", plural, err)
		}
		definitions = append(definitions, one)
	}
	return definitions, nil
}

// change is a merge patch that has a CR run again, with nothing to do in the cluster.
func (r role) change(at time.Time) []byte {
	stamp := at.UTC().Format(time.RFC3339Nano)
	if r.free {
		return fmt.Appendf(nil, `{"spec":{"changed":%q}}`, stamp)
	}
	return fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, requested, stamp)
}

func (r role) list() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(r.kind.WithVersion("v1"))
	return list
}

// names are those of so many CRs. What belongs to a CR has its name, so that no two
// roles have the same.
func (r role) names(crs int) []string {
	names := make([]string, crs)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%02d", r.name, i)
	}
	return names
}

// prepare makes a namespace with what the roles need there: a login in two Secrets.
func (s *sides) prepare(ctx context.Context, namespace string, login map[string]string) error {
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	for _, name := range []string{"mysql-admin", "mysql-readers"} {
		objects = append(objects, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: login,
		})
	}
	for _, object := range objects {
		if err := s.client.Create(ctx, object); err != nil {
			return fmt.Errorf("furnish a namespace: %w", err)
		}
	}
	return nil
}

// each calls f for each name, several at once.
func each(ctx context.Context, names []string, f func(context.Context, string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, name := range names {
		group.Go(func() error { return f(ctx, name) })
	}
	return group.Wait()
}
