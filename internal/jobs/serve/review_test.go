package serve

import (
	"context"
	"errors"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/jobs/wire"
)

// J8: of all tokens that the API server knows, only that of a Job's pod is one.
func TestOnlyTheTokenOfAJobsPodIsTaken(t *testing.T) {
	yes := true
	own := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "job-uid", Controller: &yes}
	for why, test := range map[string]struct {
		change func(*authenticationv1.TokenReviewStatus, *corev1.Pod)
		fails  error
		want   bool
		known  bool
	}{
		"the Job's pod":      {want: true, known: true},
		"it is not valid":    {change: func(s *authenticationv1.TokenReviewStatus, _ *corev1.Pod) { s.Authenticated = false }, known: true},
		"for the API server": {change: func(s *authenticationv1.TokenReviewStatus, _ *corev1.Pod) { s.Audiences = nil }, known: true},
		"for others":         {change: func(s *authenticationv1.TokenReviewStatus, _ *corev1.Pod) { s.Audiences = []string{"x"} }, known: true},
		"of another namespace": {change: func(s *authenticationv1.TokenReviewStatus, _ *corev1.Pod) {
			s.User.Username = "system:serviceaccount:ns2:a"
		}, known: true},
		"of a person":                {change: func(s *authenticationv1.TokenReviewStatus, _ *corev1.Pod) { s.User.Username = "jane" }, known: true},
		"of no pod":                  {change: func(s *authenticationv1.TokenReviewStatus, _ *corev1.Pod) { s.User.Extra = nil }, known: true},
		"of a pod that is gone":      {change: func(_ *authenticationv1.TokenReviewStatus, p *corev1.Pod) { p.Name = "other" }, known: true},
		"of a pod made anew":         {change: func(_ *authenticationv1.TokenReviewStatus, p *corev1.Pod) { p.UID = "other" }, known: true},
		"of a pod without an owner":  {change: func(_ *authenticationv1.TokenReviewStatus, p *corev1.Pod) { p.OwnerReferences = nil }, known: true},
		"of a Deployment's pod":      {change: func(_ *authenticationv1.TokenReviewStatus, p *corev1.Pod) { p.OwnerReferences[0].Kind = "ReplicaSet" }, known: true},
		"of a Job of another group":  {change: func(_ *authenticationv1.TokenReviewStatus, p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "x/v1" }, known: true},
		"of a pod that names a Job":  {change: func(_ *authenticationv1.TokenReviewStatus, p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }, known: true},
		"of a pod without its label": {change: func(_ *authenticationv1.TokenReviewStatus, p *corev1.Pod) { p.Labels = nil }},
		"the API server has no time": {fails: errors.New("too busy")},
	} {
		t.Run(why, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "pod-uid", Labels: map[string]string{"watched": "true"}, OwnerReferences: []metav1.OwnerReference{own}}}
			status := authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{wire.Audience}, User: authenticationv1.UserInfo{
				Username: "system:serviceaccount:ns:runs", Extra: map[string]authenticationv1.ExtraValue{podNameExtra: {"pod"}, podUIDExtra: {"pod-uid"}},
			}}
			if test.change != nil {
				test.change(&status, pod)
			}
			cluster := fake.NewClientBuilder().WithObjects(pod).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					review, ok := o.(*authenticationv1.TokenReview)
					if !ok || review.Spec.Token != "token" || len(review.Spec.Audiences) != 1 || review.Spec.Audiences[0] != wire.Audience {
						t.Errorf("asked for %+v", o)
						return nil
					}
					review.Status = status
					return test.fails
				},
			}).Build()
			got, err := KubeReviewer{Client: cluster, Namespace: "ns", Label: "watched"}.Review(t.Context(), "token")
			_, denied := errors.AsType[*DeniedError](err)
			if (err == nil) != test.want || !test.want && denied != test.known {
				t.Fatalf("got %+v, %v", got, err)
			}
			if want := (Caller{types.NamespacedName{Namespace: "ns", Name: "job"}, "job-uid", "pod-uid"}); test.want && got != want {
				t.Errorf("got %+v", got)
			}
		})
	}
}
