package mysql

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/mariadb"
)

// numbers keep apart what specs create on the one server.
var numbers atomic.Int64

// own returns a name that no other spec has.
func own(name string) string { return fmt.Sprintf("%s_%d", name, numbers.Add(1)) }

// spec is that of an object.
type spec = map[string]any

func object(kind, namespace, name string, fields spec) *unstructured.Unstructured {
	return harness.Custom(schema.GroupKind{Group: "myapp.myorg.tld", Kind: kind}, namespace, name, fields)
}

// newPlace makes a namespace with a MySQLCluster `server`, and waits until that is ready.
func newPlace(ctx context.Context) (namespace string) {
	GinkgoHelper()
	namespace = ground.Namespace(ctx)
	secret(ctx, namespace, "admin", server.Password)
	c := clusterOf(namespace, server)
	ground.Create(ctx, c)
	succeed(ctx, c)
	return namespace
}

func clusterOf(namespace string, of *mariadb.Server) *unstructured.Unstructured {
	return object("MySQLCluster", namespace, "server", spec{
		"mysqlAdminSecret": "admin", "endpoint": spec{"host": of.Host, "port": int64(of.Port)},
	})
}

// ofHome refers to the cluster of all specs that need no other.
func ofHome() spec { return spec{"name": "server", "namespace": home} }

// here lets an object refer to the cluster `server` of its own namespace.
func here(o *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	Expect(unstructured.SetNestedMap(o.Object, spec{"name": "server"}, "spec", "cluster")).To(Succeed())
	return o
}

// database is a MySQLDatabase whose name in the API is `database`.
func database(namespace, name, policy string) *unstructured.Unstructured {
	return object("MySQLDatabase", namespace, "database", spec{
		"cluster": ofHome(), "databaseName": name, "deletionPolicy": policy,
	})
}

// user is a MySQLUser whose name in the API is `user`, with privileges in one database.
func user(namespace, name, database string, privileges ...any) *unstructured.Unstructured {
	return object("MySQLUser", namespace, "user", spec{
		"cluster": ofHome(), "username": name, "passwordSecret": "password", "privileges": granted(database, privileges...),
	})
}

func granted(database string, privileges ...any) []any {
	return []any{spec{"database": database, "privileges": privileges}}
}

// secret creates a Secret with a password, or changes it.
func secret(ctx context.Context, namespace, name, password string) {
	GinkgoHelper()
	o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: mariadb.SecretLabels()}, StringData: map[string]string{"password": password}}
	if err := ground.Client.Create(ctx, o); apierrors.IsAlreadyExists(err) {
		Expect(ground.Client.Patch(ctx, o, client.StrategicMergeFrom(&corev1.Secret{}))).To(Succeed())
	} else {
		Expect(err).NotTo(HaveOccurred())
	}
}

// login creates the Secret of an administrator who is not root.
func login(ctx context.Context, namespace, name, password string) {
	GinkgoHelper()
	ground.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "admin", Labels: mariadb.SecretLabels()},
		StringData: map[string]string{"username": name, "password": password},
	})
}

func change(ctx context.Context, o *unstructured.Unstructured, field string, value any) {
	GinkgoHelper()
	before := o.DeepCopy()
	Expect(unstructured.SetNestedField(o.Object, value, "spec", field)).To(Succeed())
	Expect(ground.Client.Patch(ctx, o, client.MergeFrom(before))).To(Succeed())
}

// succeed waits until the last generation of each has been done.
func succeed(ctx context.Context, objects ...*unstructured.Unstructured) {
	GinkgoHelper()
	for _, o := range objects {
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
			condition := harness.ConditionOf(o, "Successful")
			g.Expect(condition.Status).To(Equal("True"), "%s %s: %+v", o.GetKind(), o.GetName(), harness.ConditionOf(o, "Failure"))
			g.Expect(condition.Generation).To(Equal(o.GetGeneration()))
		}).Should(Succeed())
	}
}

// fail waits until the last run has failed with a message.
func fail(ctx context.Context, o *unstructured.Unstructured, message types.GomegaMatcher) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		g.Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		condition := harness.ConditionOf(o, "Failure")
		g.Expect(condition.Status).To(Equal("True"), "%s %s is at work", o.GetKind(), o.GetName())
		g.Expect(condition.Message).To(message)
	}).Should(Succeed())
}

// remove deletes an object and waits until its finalizer is done.
func remove(ctx context.Context, o *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(ground.Client.Delete(ctx, o)).To(Succeed())
	ground.Gone(ctx, o)
}

// ask sends statements as root.
func ask(ctx context.Context, statements string) string {
	GinkgoHelper()
	answer, err := server.Query(ctx, statements)
	Expect(err).NotTo(HaveOccurred())
	return answer
}

// as sends statements as another user.
func as(name, password, statements string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		return server.QueryAs(ctx, mariadb.Login{User: name, Password: password}, statements)
	}
}

// refused is what the server says to who may not log in, and denied what it says to who
// may not do that.
func refused() types.GomegaMatcher { return MatchError(ContainSubstring("ERROR 1045")) }

func denied() types.GomegaMatcher { return MatchError(MatchRegexp(`ERROR (1044|1142)`)) }

// databases are those with a name that begins so.
func databases(ctx context.Context, name string) []string {
	GinkgoHelper()
	return strings.Fields(ask(ctx, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE LEFT(SCHEMA_NAME, "+
		fmt.Sprint(len(name))+") = '"+name+"' ORDER BY 1"))
}

func gone(o *unstructured.Unstructured) func(context.Context) bool {
	return func(ctx context.Context) bool {
		return apierrors.IsNotFound(ground.Client.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopy()))
	}
}

// refuse expects the API server to refuse an object, because it is invalid.
func refuse(ctx context.Context, o *unstructured.Unstructured, what any) {
	GinkgoHelper()
	Expect(ground.Client.Create(ctx, o)).To(Satisfy(apierrors.IsInvalid), "%s with %q", o.GetKind(), what)
}

func metaOf(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
