package controller

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	examplecomv1 "github.com/ensign-operator/ensign/examples/visitors/go/api/v1"
)

// world is an API server with one VisitorsApp, of the name and namespace "site", and its reconciler.
type world struct {
	*testing.T
	client.Client
}

func newWorld(t *testing.T, others ...client.Object) world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, examplecomv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	app := &examplecomv1.VisitorsApp{ObjectMeta: of("site")}
	app.UID, app.Spec.Size, app.Spec.Title = "the-uid", 2, new("Hello")
	return world{t, fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(others, app)...).
		WithStatusSubresource(app, &appsv1.StatefulSet{}, &appsv1.Deployment{}).Build()}
}

func of(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "site", Name: name} }

func (w world) reconcile() error {
	r := &VisitorsAppReconciler{Client: w.Client, Direct: w.Client, Scheme: w.Scheme(), Images: Images{Visitors: "visitors:1", MySQL: "mysql:1"}}
	_, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "site", Name: "site"}})
	return err
}

// reconciles fails the test where a run does, and returns the reason of the condition Ready.
func (w world) reconciles() string {
	w.Helper()
	if err := w.reconcile(); err != nil {
		w.Fatal(err)
	}
	app := &examplecomv1.VisitorsApp{}
	w.get("site", app)
	ready := meta.FindStatusCondition(app.Status.Conditions, "Ready")
	if ready == nil || app.Status.Ready != (ready.Status == metav1.ConditionTrue) {
		w.Fatalf("ready is %v, and the condition %v", app.Status.Ready, ready)
	}
	return ready.Reason
}

func (w world) get(name string, object client.Object) {
	w.Helper()
	if err := w.Get(context.Background(), client.ObjectKey{Namespace: "site", Name: name}, object); err != nil {
		w.Fatal(err)
	}
}

func (w world) do(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// there returns the parts that are there, in the order of their deletion.
func (w world) there() (names []string) {
	w.Helper()
	for name, object := range map[string]client.Object{"1 frontend": &appsv1.Deployment{}, "2 backend": &appsv1.Deployment{}, "3 mysql": &appsv1.StatefulSet{}} {
		err := w.Get(context.Background(), client.ObjectKey{Namespace: "site", Name: "site-" + name[2:]}, object)
		if client.IgnoreNotFound(err) != nil {
			w.Fatal(err)
		}
		if err == nil && object.GetDeletionTimestamp() == nil {
			names = append(names, name[2:])
		}
	}
	slices.Sort(names)
	return names
}

// databaseHas says how many pods of the database are ready.
func (w world) databaseHas(ready int32) {
	w.Helper()
	set := &appsv1.StatefulSet{}
	w.get("site-mysql", set)
	set.Status.ReadyReplicas = ready
	w.do(w.Status().Update(context.Background(), set))
}

// start lets all pods of the Deployments start.
func (w world) start() {
	w.Helper()
	for _, name := range []string{"site-backend", "site-frontend"} {
		d := &appsv1.Deployment{}
		w.get(name, d)
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas, ReadyReplicas: *d.Spec.Replicas}
		w.do(w.Status().Update(context.Background(), d))
	}
}

func TestASiteIsMadePartByPart(t *testing.T) {
	w := newWorld(t)
	for _, step := range []struct {
		happens func()
		reason  string
		there   string
	}{
		{func() {}, "DatabaseStarts", "mysql"},
		{func() {}, "DatabaseStarts", "mysql"},
		{func() { w.databaseHas(1) }, "PodsStart", "backend frontend mysql"},
		{w.start, "Ready", "backend frontend mysql"},
		{func() { w.databaseHas(0) }, "DatabaseDown", "backend frontend mysql"},
		{func() { w.databaseHas(1) }, "Ready", "backend frontend mysql"},
	} {
		step.happens()
		reason, there := w.reconciles(), strings.Join(w.there(), " ")
		if reason != step.reason || there != step.there {
			t.Fatalf("got %s with %s, want %s with %s", reason, there, step.reason, step.there)
		}
	}
}

func TestAChangeOfTheSpecReachesWhatDependsOnIt(t *testing.T) {
	w := newWorld(t)
	w.reconciles()
	w.databaseHas(1)
	w.reconciles()
	passwords := &corev1.Secret{}
	w.get("site-mysql", passwords)
	app := &examplecomv1.VisitorsApp{}
	w.get("site", app)
	app.Spec.Size, app.Spec.Title = 5, new("Other")
	w.do(w.Update(context.Background(), app))
	w.reconciles()
	backend, frontend, after := &appsv1.Deployment{}, &appsv1.Deployment{}, &corev1.Secret{}
	w.get("site-backend", backend)
	w.get("site-frontend", frontend)
	w.get("site-mysql", after)
	if *backend.Spec.Replicas != 5 || *frontend.Spec.Replicas != 1 {
		t.Errorf("got %d backends and %d frontends", *backend.Spec.Replicas, *frontend.Spec.Replicas)
	}
	has := func(d *appsv1.Deployment) bool {
		return slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Value == "Other" })
	}
	if has(backend) || !has(frontend) {
		t.Error("the title is the frontend's alone")
	}
	if after.StringData["password"] != passwords.StringData["password"] || after.StringData["password"] == "" {
		t.Error("the passwords have changed")
	}
}

// ready returns the condition Ready.
func (w world) ready() metav1.Condition {
	w.Helper()
	app := &examplecomv1.VisitorsApp{}
	w.get("site", app)
	return *meta.FindStatusCondition(app.Status.Conditions, "Ready")
}

// TestObjectsOfOthersAreNotTouched has one object of somebody else in the way of each object of a
// site, before the site is made and after.
func TestObjectsOfOthersAreNotTouched(t *testing.T) {
	labelled := func(name string, p part) metav1.ObjectMeta {
		meta := metadata(&examplecomv1.VisitorsApp{ObjectMeta: of("site")}, p)
		meta.Name = name
		return meta
	}
	objects := map[string]func() client.Object{
		"Secret site-mysql":        func() client.Object { return &corev1.Secret{ObjectMeta: labelled("site-mysql", database)} },
		"StatefulSet site-mysql":   func() client.Object { return &appsv1.StatefulSet{ObjectMeta: labelled("site-mysql", database)} },
		"Service site-mysql":       func() client.Object { return &corev1.Service{ObjectMeta: labelled("site-mysql", database)} },
		"Deployment site-backend":  func() client.Object { return &appsv1.Deployment{ObjectMeta: labelled("site-backend", backend)} },
		"Service site-backend":     func() client.Object { return &corev1.Service{ObjectMeta: labelled("site-backend", backend)} },
		"Deployment site-frontend": func() client.Object { return &appsv1.Deployment{ObjectMeta: labelled("site-frontend", frontend)} },
		"Service site-frontend":    func() client.Object { return &corev1.Service{ObjectMeta: labelled("site-frontend", frontend)} },
		"PersistentVolumeClaim site-mysql": func() client.Object {
			return &corev1.PersistentVolumeClaim{ObjectMeta: labelled("site-mysql", database)}
		},
	}
	owners := map[string]struct {
		whose string
		give  func(client.Object)
	}{
		"nobody": {"has no owner", func(client.Object) {}},
		"another VisitorsApp of the name": {"belongs to VisitorsApp site (UID another)", func(o client.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "VisitorsApp", Name: "site", UID: "another", Controller: new(true)}})
		}},
		"a Helm release": {"belongs to the Helm release site/lobby", func(o client.Object) {
			o.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "lobby", "meta.helm.sh/release-namespace": "site"})
		}},
	}
	for what, build := range objects {
		for whose, owner := range owners {
			t.Run(what+" of "+whose, func(t *testing.T) {
				theirs := build()
				owner.give(theirs)
				w := newWorld(t, theirs)
				before := build()
				w.get(theirs.GetName(), before)
				if reason := w.reconciles(); reason != "ObjectOfOthers" {
					t.Errorf("the reason is %s", reason)
				}
				kind, name, _ := strings.Cut(what, " ")
				if message := w.ready().Message; !strings.HasPrefix(message, kind+" site/"+name+" exists and "+owner.whose) {
					t.Errorf("the message is %q", message)
				}
				app := &examplecomv1.VisitorsApp{}
				w.get("site", app)
				w.do(w.Delete(context.Background(), app))
				w.do(w.reconcile())
				if err := w.Get(context.Background(), client.ObjectKeyFromObject(app), app); !apierrors.IsNotFound(err) {
					t.Errorf("the VisitorsApp is still there: %v", err)
				}
				after := build()
				w.get(theirs.GetName(), after)
				if !equality.Semantic.DeepEqual(before, after) {
					t.Errorf("it was changed to %v", after)
				}
			})
		}
	}
}

// TestALostSecretIsRestored: it is not chosen anew, and what somebody restores is used.
func TestALostSecretIsRestored(t *testing.T) {
	w := newWorld(t)
	w.reconciles()
	w.databaseHas(1)
	w.reconciles()
	w.start()
	if reason := w.reconciles(); reason != "Ready" {
		t.Fatal(reason)
	}
	w.do(w.Delete(context.Background(), &corev1.Secret{ObjectMeta: of("site-mysql")}))
	app := &examplecomv1.VisitorsApp{}
	w.get("site", app)
	app.Generation, app.Spec.Size = 7, 3
	w.do(w.Update(context.Background(), app))
	if reason := w.reconciles(); reason != "SecretLost" || w.ready().ObservedGeneration != 7 || !strings.Contains(w.ready().Message, "restore the Secret") {
		t.Fatalf("got %s: %v", reason, w.ready())
	}
	w.do(w.Create(context.Background(), &corev1.Secret{ObjectMeta: of("site-mysql"), StringData: map[string]string{"password": "1", "root-password": "2"}}))
	if reason := w.reconciles(); reason != "PodsStart" {
		t.Fatal(reason)
	}
	backend := &appsv1.Deployment{}
	w.get("site-backend", backend)
	if *backend.Spec.Replicas != 3 {
		t.Errorf("there are %d backends", *backend.Spec.Replicas)
	}
}

func TestASiteGoesInReverse(t *testing.T) {
	w := newWorld(t)
	w.reconciles()
	w.databaseHas(1)
	w.reconciles()
	app := &examplecomv1.VisitorsApp{}
	w.get("site", app)
	w.do(w.Delete(context.Background(), app))
	for _, there := range []string{"backend mysql", "mysql", ""} {
		w.do(w.reconcile())
		if got := strings.Join(w.there(), " "); got != there {
			t.Fatalf("there is %q, want %q", got, there)
		}
	}
	w.do(w.reconcile())
	if err := w.Get(context.Background(), client.ObjectKeyFromObject(app), app); !apierrors.IsNotFound(err) {
		t.Errorf("the VisitorsApp is still there: %v", err)
	}
	w.do(w.reconcile()) // Of one that is gone.
}
