// Package controller has the reconcilers that are written in Go.
package controller

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	examplecomv1 "github.com/ensign-operator/ensign/examples/visitors/go/api/v1"
)

// finalizer holds a VisitorsApp until its site is gone, part by part.
const finalizer = "example.com/finalizer"

// again is the time until the next look at what was refused: nothing that is watched changes when it
// is corrected.
const again = 10 * time.Second

// VisitorsAppReconciler keeps the site of each VisitorsApp.
type VisitorsAppReconciler struct {
	client.Client
	// Direct reads from the API server, so that no cache holds the Secrets of the cluster.
	Direct client.Reader
	Scheme *runtime.Scheme
	Images Images
}

// +kubebuilder:rbac:groups=example.com,resources=visitorsapps,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=example.com,resources=visitorsapps/status,verbs=patch
// +kubebuilder:rbac:groups=example.com,resources=visitorsapps/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services;persistentvolumeclaims,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create
// +kubebuilder:rbac:groups="",resources=pods,verbs=get

// Reconcile does what can be done and says what it found. It waits for nothing: what was not ready
// brings the VisitorsApp back when it is.
func (r *VisitorsAppReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	app := &examplecomv1.VisitorsApp{}
	if err := r.Get(ctx, req.NamespacedName, app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !app.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.remove(ctx, app)
	}
	before := app.DeepCopy()
	if controllerutil.AddFinalizer(app, finalizer) {
		if err := r.Patch(ctx, app, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return ctrl.Result{}, fmt.Errorf("add the finalizer: %w", err)
		}
	}
	kept, failed := r.keep(ctx, app)
	before = app.DeepCopy()
	r.Images.report(app, kept, failed)
	if err := r.Status().Patch(ctx, app, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		failed = errors.Join(failed, fmt.Errorf("write the status: %w", err))
	}
	if refused := (*refusal)(nil); errors.As(failed, &refused) {
		ctrl.LoggerFrom(ctx).Info("refused", "reason", refused.reason, "message", refused.message)
		return ctrl.Result{RequeueAfter: again}, nil
	}
	return ctrl.Result{}, failed
}

// keep keeps the objects of a site in their order, and returns its workloads as they are. It changes
// nothing if one of the names is somebody else's.
func (r *VisitorsAppReconciler) keep(ctx context.Context, app *examplecomv1.VisitorsApp) (kept workloads, err error) {
	kept.database, kept.backend, kept.frontend = r.Images.database(app), r.Images.backend(app), r.Images.frontend(app)
	first := []client.Object{volume(app), service(app, database, 3306), kept.database}
	then := []client.Object{service(app, backend, 8000), kept.backend, service(app, frontend, 3000), kept.frontend}
	exists := map[client.Object]bool{}
	for _, object := range slices.Concat(first, then) {
		there, _ := object.DeepCopyObject().(client.Object)
		if exists[object], err = r.find(ctx, app, there); err != nil {
			return kept, err
		}
		object.SetUID(there.GetUID()) // The API server refuses to apply it to another object of the name.
	}
	kept.begun = exists[kept.backend]
	if !exists[kept.database] {
		if err := r.checkPod(ctx, app); err != nil {
			return kept, err
		}
	}
	if err := r.choosePasswords(ctx, app, exists[kept.database]); err != nil {
		return kept, err
	}
	if err := r.apply(ctx, app, first...); err != nil {
		return kept, err
	}
	// The first backend waits for the database. Later the site stays up without it, and says so.
	if kept.begun = kept.begun || kept.database.Status.ReadyReplicas > 0; !kept.begun {
		return kept, nil
	}
	return kept, r.apply(ctx, app, then...)
}

// choosePasswords makes the Secret once. The database knows only the passwords that it was made with.
func (r *VisitorsAppReconciler) choosePasswords(ctx context.Context, app *examplecomv1.VisitorsApp, begun bool) error {
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metadata(app, database)}
	there, err := r.find(ctx, app, secret)
	switch {
	case begun && there && ownerOf(secret) == "":
		return nil // Somebody has restored it. It is used, and stays when the VisitorsApp is deleted.
	case there, err != nil:
		return err
	case begun:
		return &refusal{"SecretLost", fmt.Sprintf("Secret %s/%s is gone, and nobody else knows the passwords of the database: restore the Secret, with the keys password and root-password, or delete the VisitorsApp with its data", app.Namespace, secret.Name)}
	}
	secret.StringData = map[string]string{"password": rand.Text(), "root-password": rand.Text()}
	if err := controllerutil.SetControllerReference(app, secret, r.Scheme); err != nil {
		return fmt.Errorf("own the Secret: %w", err)
	}
	return r.Create(ctx, secret)
}

// apply has the API server merge objects with those that are there, and reads back what came of it.
func (r *VisitorsAppReconciler) apply(ctx context.Context, app *examplecomv1.VisitorsApp, objects ...client.Object) error {
	for _, object := range objects {
		kind := object.GetObjectKind().GroupVersionKind().Kind
		if err := controllerutil.SetControllerReference(app, object, r.Scheme); err != nil {
			return fmt.Errorf("own %s %s: %w", kind, object.GetName(), err)
		}
		text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return fmt.Errorf("write %s %s: %w", kind, object.GetName(), err)
		}
		delete(text, "status")
		wanted := &unstructured.Unstructured{Object: text}
		if err := r.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), client.FieldOwner("visitors"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", kind, object.GetName(), err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(wanted.Object, object); err != nil {
			return fmt.Errorf("read %s %s: %w", kind, object.GetName(), err)
		}
	}
	return nil
}

// remove deletes the parts of a site in their reverse order, each when what stood on it is gone with its
// pods. The end of each brings the VisitorsApp back. The PVC, the Services
// and the Secret go with it.
func (r *VisitorsAppReconciler) remove(ctx context.Context, app *examplecomv1.VisitorsApp) error {
	parts := []client.Object{
		&appsv1.Deployment{ObjectMeta: metadata(app, frontend)}, &appsv1.Deployment{ObjectMeta: metadata(app, backend)}, &appsv1.StatefulSet{ObjectMeta: metadata(app, database)},
	}
	for _, part := range parts {
		switch err := r.Get(ctx, client.ObjectKeyFromObject(part), part); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("look for %s: %w", part.GetName(), err)
		case !ownedBy(part, app.UID):
			continue
		case !part.GetDeletionTimestamp().IsZero():
			return nil
		}
		return client.IgnoreNotFound(r.Delete(ctx, part, client.PropagationPolicy(metav1.DeletePropagationForeground), client.Preconditions{UID: new(part.GetUID())}))
	}
	before := app.DeepCopy()
	if !controllerutil.RemoveFinalizer(app, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(r.Patch(ctx, app, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// SetupWithManager adds the reconciler to a manager.
func (r *VisitorsAppReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&examplecomv1.VisitorsApp{}).
		Owns(&appsv1.StatefulSet{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.PersistentVolumeClaim{}).
		Complete(r)
}
