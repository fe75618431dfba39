// Package controller has the reconcilers that are written in Go.
package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1 "github.com/ensign-operator/ensign/examples/hybrid/api/v1"
)

const (
	// backupLabel is on the pods; its value is the name of their MemcachedBackup.
	backupLabel = "cache.my.domain/backup"
	image       = "memcached:1.6"
	// user is memcached's in that image.
	user = 11211
)

// errOfOthers is the error for an object that this MemcachedBackup did not create: whoever may create
// one must not change objects of others by its name.
var errOfOthers = errors.New("does not belong to MemcachedBackup")

// MemcachedBackupReconciler keeps a Deployment for each MemcachedBackup.
type MemcachedBackupReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// +kubebuilder:rbac:groups=cache.my.domain,resources=memcachedbackups,verbs=get;list;watch
// +kubebuilder:rbac:groups=cache.my.domain,resources=memcachedbackups/status,verbs=patch
// +kubebuilder:rbac:groups=cache.my.domain,resources=memcachedbackups/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch

// Reconcile gives the Deployment as many pods as the spec asks for, and writes their names into the
// status.
func (r *MemcachedBackupReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	backup := &cachev1.MemcachedBackup{}
	if err := r.Get(ctx, req.NamespacedName, backup); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !backup.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // The garbage collector deletes the Deployment, by its owner.
	}
	nodes, failed := r.keep(ctx, backup)
	if err := r.writeStatus(ctx, backup, nodes, failed); err != nil {
		return ctrl.Result{}, errors.Join(failed, err)
	}
	if errors.Is(failed, errOfOthers) {
		ctrl.LoggerFrom(ctx).Info("refused", "message", failed.Error())
		return ctrl.Result{RequeueAfter: 10 * time.Second}, nil // Nothing that is watched changes when it is corrected.
	}
	return ctrl.Result{}, failed
}

// keep gives the Deployment as many pods as the spec asks for, and returns their names.
func (r *MemcachedBackupReconciler) keep(ctx context.Context, backup *cachev1.MemcachedBackup) ([]string, error) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: backup.Namespace, Name: backup.Name + "-backup"}}
	_, err := controllerutil.CreateOrPatch(ctx, r.Client, deployment, func() error {
		if deployment.ResourceVersion != "" && !metav1.IsControlledBy(deployment, backup) {
			return fmt.Errorf("Deployment %s/%s exists and %w %s. Delete it if nobody needs it, or give MemcachedBackup %[4]s another name", deployment.Namespace, deployment.Name, errOfOthers, backup.Name) //nolint:staticcheck // It is the message of a condition.
		}
		shape(deployment, backup)
		return controllerutil.SetControllerReference(backup, deployment, r.Scheme)
	})
	if errors.Is(err, errOfOthers) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("keep the Deployment: %w", err)
	}
	return r.nodes(ctx, backup)
}

// shape sets what the Deployment has of a MemcachedBackup, and leaves the rest as the API server or
// others have set it.
func shape(deployment *appsv1.Deployment, backup *cachev1.MemcachedBackup) {
	labels := map[string]string{backupLabel: backup.Name}
	deployment.Spec.Replicas = new(backup.Spec.Size)
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	pod := &deployment.Spec.Template.Spec
	pod.AutomountServiceAccountToken = new(false)
	pod.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: new(int64(user)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if len(pod.Containers) == 0 {
		pod.Containers = make([]corev1.Container, 1)
	}
	server := &pod.Containers[0]
	server.Name, server.Image, server.Command = "memcached", image, []string{"memcached"}
	server.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// nodes returns the names of the pods.
func (r *MemcachedBackupReconciler) nodes(ctx context.Context, backup *cachev1.MemcachedBackup) (nodes []string, err error) {
	pods := &corev1.PodList{}
	if err := r.List(ctx, pods, client.InNamespace(backup.Namespace), client.MatchingLabels{backupLabel: backup.Name}); err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp.IsZero() {
			nodes = append(nodes, pod.Name)
		}
	}
	slices.Sort(nodes)
	return nodes, nil
}

// writeStatus writes what was found, if it is not there already. A spec that could not be applied is
// not ready, although the pods of an earlier one may still be there.
func (r *MemcachedBackupReconciler) writeStatus(ctx context.Context, backup *cachev1.MemcachedBackup, nodes []string, failed error) error {
	before := backup.DeepCopy()
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Kept", ObservedGeneration: backup.Generation}
	switch {
	case errors.Is(failed, errOfOthers):
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "ObjectOfOthers", failed.Error()
	case failed != nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Failed", failed.Error()
	default:
		backup.Status.Nodes = nodes
	}
	meta.SetStatusCondition(&backup.Status.Conditions, condition)
	if equality.Semantic.DeepEqual(before.Status, backup.Status) {
		return nil
	}
	return client.IgnoreNotFound(r.Status().Patch(ctx, backup, client.MergeFrom(before)))
}

// SetupWithManager adds the reconciler to a manager. Pods belong to ReplicaSets, so that their label
// tells whose they are.
func (r *MemcachedBackupReconciler) SetupWithManager(mgr ctrl.Manager) error {
	backupOf := func(_ context.Context, pod client.Object) []reconcile.Request {
		name, labelled := pod.GetLabels()[backupLabel]
		if !labelled {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&cachev1.MemcachedBackup{}).
		Owns(&appsv1.Deployment{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(backupOf)).
		Complete(r)
}
