package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	examplecomv1 "github.com/ensign-operator/ensign/examples/visitors/go/api/v1"
)

// refusal is an error that somebody has to correct outside of the VisitorsApp, in an object that no
// watch sees. Its text is the message of the condition Ready.
type refusal struct{ reason, message string }

func (r *refusal) Error() string { return r.message }

// find reads an object of a site from the API server, and reports whether it is there. It fails for
// one that belongs to somebody else: whoever may create a VisitorsApp must not change, use or delete
// objects of others by its name. The proof is the UID of an owner, since anybody can choose names
// and labels.
func (r *VisitorsAppReconciler) find(ctx context.Context, app *examplecomv1.VisitorsApp, object client.Object) (bool, error) {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	err := r.Direct.Get(ctx, client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for %s %s: %w", kind, object.GetName(), err)
	case ownedBy(object, app.UID):
		return true, nil
	}
	theirs := fmt.Sprintf("belongs to %s, not", ownerOf(object))
	if ownerOf(object) == "" {
		theirs = "has no owner, so it does not belong"
	}
	return true, &refusal{"ObjectOfOthers", fmt.Sprintf("%[1]s %[2]s/%[3]s exists and %[4]s to VisitorsApp %[5]s. Delete what nobody needs, or give VisitorsApp %[5]s another name",
		kind, object.GetNamespace(), object.GetName(), theirs, app.Name)}
}

// ownedBy reports whether one of the owners has the UID, and no other object is the controller.
func ownedBy(object client.Object, uid types.UID) bool {
	if controller := metav1.GetControllerOf(object); controller != nil && controller.UID != uid {
		return false
	}
	return slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == uid })
}

// ownerOf returns what owns an object, "" if nothing does.
func ownerOf(object client.Object) string {
	const release, place = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
	owners, annotations := object.GetOwnerReferences(), object.GetAnnotations()
	switch {
	case len(owners) > 0:
		first := owners[0]
		if controller := metav1.GetControllerOf(object); controller != nil {
			first = *controller
		}
		return fmt.Sprintf("%s %s (UID %s)", first.Kind, first.Name, first.UID)
	case annotations[release] != "":
		return fmt.Sprintf("the Helm release %s/%s", cmp.Or(annotations[place], object.GetNamespace()), annotations[release])
	}
	return ""
}

// checkPod fails for a pod of somebody else that the StatefulSet would take up and replace, by its name
// and its labels.
func (r *VisitorsAppReconciler) checkPod(ctx context.Context, app *examplecomv1.VisitorsApp) error {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metadata(app, database)}
	pod.Name += "-0"
	_, err := r.find(ctx, app, pod)
	return err
}
