package jobs

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/jobs/wire"
)

var _ = Describe("a stranger in the network of the operator", func() {
	It("gets nothing from the port for agents, whatever token it has", func(ctx SpecContext) {
		o := newOperator(ctx, "10m")
		o.Start(ctx, work.Kind)
		cr := o.create(ctx, "private", map[string]any{"seconds": 600.0})
		at(ctx, cr, lives, 1)
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		address := ""
		for _, arg := range o.Options.Args {
			if value, ok := strings.CutPrefix(arg, "--job-bind-address="); ok {
				address = value
			}
		}
		ask := func(method, path, token string) int {
			GinkgoHelper()
			request, err := http.NewRequestWithContext(ctx, method, "https://"+address+path, strings.NewReader("{}"))
			Expect(err).NotTo(HaveOccurred())
			if token != "" {
				request.Header.Set("Authorization", "Bearer "+token)
			}
			response, err := client.Do(request)
			Expect(err).NotTo(HaveOccurred())
			Expect(response.Body.Close()).To(Succeed())
			return response.StatusCode
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: "default"}}
		stranger := o.stranger(ctx)
		token := func(audience string, bound *authenticationv1.BoundObjectReference) string {
			GinkgoHelper()
			request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, BoundObjectRef: bound}}
			Expect(ground.Client.SubResource("token").Create(ctx, account, request)).To(Succeed())
			return request.Status.Token
		}
		ofStranger := &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: stranger.Name, UID: stranger.UID}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.pod(ctx, cr)}}
		Expect(ground.Client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, pod)).To(Succeed())
		ofRun := &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
		for name, credential := range map[string]string{
			"none": "", "nonsense": "nonsense", "of no pod": token(wire.Audience, nil), "of another pod": token(wire.Audience, ofStranger),
			"of the run's pod for the API server": token("https://kubernetes.default.svc.cluster.local", ofRun),
		} {
			for _, path := range []string{wire.ClaimPath, wire.EventsPath, wire.ResultPath, wire.APIPath + "/api/v1/namespaces", wire.MetricsPath, "/", "/metrics"} {
				Expect(ask(http.MethodPost, path, credential)).To(BeElementOf(http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound), "%s with a token %s", path, name)
			}
		}
		Expect(counted(cr, begins)).To(Equal(1))
		Expect(ground.Client.Delete(ctx, cr)).To(Succeed())
		o.leavesNothing(ctx)
	})
})

// stranger makes a pod that is no run.
func (o operator) stranger(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: "stranger"}, Spec: corev1.PodSpec{
		NodeName: "nowhere", Containers: []corev1.Container{{Name: "c", Image: "none"}},
	}}
	Eventually(ctx, func(ctx context.Context) error { return ground.Client.Create(ctx, pod) }).Should(Succeed()) // The namespace's account may be to come.
	return pod
}
