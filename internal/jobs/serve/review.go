package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/jobs/wire"
)

// Caller is the pod of a Job.
type Caller struct {
	Job            types.NamespacedName
	JobUID, PodUID types.UID
}

// Reviewer finds the pod of a service account token.
type Reviewer interface {
	// Review returns the pod of the token. A DeniedError means that it is not a token of a pod of a
	// Job, ErrUnlabeled that the pod gets no run. With any other error this is not known.
	Review(ctx context.Context, token string) (Caller, error)
}

// DeniedError says why a token does not give its bearer a run.
type DeniedError struct{ Why string }

func (e *DeniedError) Error() string { return e.Why }

// KubeReviewer is a Reviewer that asks the API server.
type KubeReviewer struct {
	// Client reads without a cache, which may not have the pod yet.
	Client client.Client
	// Namespace is that of the Jobs.
	Namespace string
	// Label is true on the pods of runs, which the manager watches.
	Label string
}

// ErrUnlabeled is returned for a pod that the manager does not watch. The manager would not see its end,
// so that it might run beside the next run.
var ErrUnlabeled = errors.New("the pod has lost the label by which the operator watches it; does an admission webhook remove it?")

// The extra attributes of a token that is bound to a pod.
const (
	podNameExtra = "authentication.kubernetes.io/pod-name"
	podUIDExtra  = "authentication.kubernetes.io/pod-uid"
)

// Review implements Reviewer. The pod must be in the namespace of Jobs, and a Job must control it.
func (k KubeReviewer) Review(ctx context.Context, token string) (Caller, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{wire.Audience}}}
	if err := k.Client.Create(ctx, review); err != nil {
		return Caller{}, fmt.Errorf("review a token: %w", err)
	}
	status := review.Status
	if !status.Authenticated || !slices.Contains(status.Audiences, wire.Audience) {
		return Caller{}, &DeniedError{"the token is not valid for " + wire.Audience}
	}
	if !strings.HasPrefix(status.User.Username, "system:serviceaccount:"+k.Namespace+":") {
		return Caller{}, &DeniedError{"the token is of " + status.User.Username}
	}
	name, uid := status.User.Extra[podNameExtra], status.User.Extra[podUIDExtra]
	if len(name) != 1 || len(uid) != 1 {
		return Caller{}, &DeniedError{"the token is not bound to a pod"}
	}
	pod := &corev1.Pod{}
	err := k.Client.Get(ctx, types.NamespacedName{Namespace: k.Namespace, Name: name[0]}, pod)
	if apierrors.IsNotFound(err) {
		return Caller{}, &DeniedError{"the pod of the token is gone"}
	}
	if err != nil {
		return Caller{}, fmt.Errorf("read the pod of a token: %w", err)
	}
	owner := metav1.GetControllerOf(pod)
	if string(pod.UID) != uid[0] || owner == nil || owner.Kind != "Job" || owner.APIVersion != "batch/v1" {
		return Caller{}, &DeniedError{"the pod of the token is of no Job"}
	}
	if pod.Labels[k.Label] != "true" {
		return Caller{}, fmt.Errorf("%w (%s)", ErrUnlabeled, k.Label)
	}
	return Caller{Job: types.NamespacedName{Namespace: k.Namespace, Name: owner.Name}, JobUID: owner.UID, PodUID: pod.UID}, nil
}
