package chart

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// onNoNode are values by which no pod of the release is given to a node, where kwok would
// end the pod of the uninstall check well.
const onNoNode = "--set=nodeSelector.node=none"

// uninstall runs helm uninstall, and plays the kubelet of the uninstall check's pod
// meanwhile. It returns what the check and what helm printed, and helm's error.
func uninstall(ctx context.Context, namespace, release string) (checked, printed string, err error) {
	GinkgoHelper()
	done := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(done)
		printed, err = tryHelm(ctx, "uninstall", release, "--namespace="+namespace)
	}()
	pods := &corev1.PodList{}
	Eventually(func(g Gomega) {
		Expect(c.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/component": "uninstall-check"},
			client.MatchingFields{"status.phase": string(corev1.PodPending)})).To(Succeed())
		g.Expect(pods.Items).To(HaveLen(1))
	}).WithContext(ctx).Should(Succeed())
	pod := &pods.Items[0]
	checked, failed := execute(ctx, pod)
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodSucceeded
	if failed != nil {
		pod.Status.Phase = corev1.PodFailed
	}
	Expect(c.Status().Patch(ctx, pod, client.MergeFrom(before))).To(Succeed()) // The scheduler writes conditions.
	Eventually(done).WithContext(ctx).Should(BeClosed())
	return checked, printed, err
}

// execute runs the command of the pod's only container on this machine, with the
// container's environment and the rights of the pod's account, and nothing else.
func execute(ctx context.Context, pod *corev1.Pod) (string, error) {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}}
	token := &authenticationv1.TokenRequest{}
	Expect(c.SubResource("token").Create(ctx, account, token)).To(Succeed())
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, kubeconfig)).To(Succeed())

	Expect(pod.Spec.Containers).To(HaveLen(1))
	container := pod.Spec.Containers[0]
	env := []string{"KUBECONFIG=" + kubeconfig}
	for _, variable := range container.Env {
		env = append(env, variable.Name+"="+variable.Value)
	}
	Expect(container.Command).To(Equal([]string{"/usr/local/bin/manager", "can-uninstall"}))
	Expect(os.ReadFile(filepath.Join(root, "Dockerfile"))).To(ContainSubstring(" /usr/local/bin/"))
	return run(ctx, env, filepath.Join(root, "bin", "manager"), append(container.Command[1:], container.Args...)...)
}
