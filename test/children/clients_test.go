package children

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// typedClient is the variable that makes this binary a program of a run: a client with Go
// types that accepts what the variable says.
const typedClient = "CHILDREN_TYPED_CLIENT"

func TestMain(m *testing.M) {
	if accept := os.Getenv(typedClient); accept != "" {
		if err := replaceTyped(context.Background(), accept, os.Args[1], os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// replaceTyped deletes a ConfigMap, a collection and a Pod, and makes them anew with the value.
func replaceTyped(ctx context.Context, accept, namespace, name, value string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, accept
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	background, none := metav1.DeletePropagationBackground, int64(0)
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	configMaps, pods := typed.CoreV1().ConfigMaps(namespace), typed.CoreV1().Pods(namespace)
	ignore := func(err error) error {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	err = errors.Join(
		ignore(configMaps.Delete(ctx, name, options)),
		configMaps.DeleteCollection(ctx, options, metav1.ListOptions{LabelSelector: "of=" + name}),
		ignore(pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &none}})),
	)
	if err != nil {
		return err
	}
	data := map[string]string{"value": value}
	for child, labels := range map[string]map[string]string{name: nil, name + "-one": {"of": name}, name + "-two": {"of": name}} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: child, Labels: labels}, Data: data}
		if _, err := configMaps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		SchedulerName: "nobody", Containers: []corev1.Container{{Name: "c", Image: "nothing", Env: []corev1.EnvVar{{Name: "VALUE", Value: value}}}},
	}}
	_, err = pods.Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// clients has a task for each client; the CR's name says whose it is.
const clients = `
- hosts: localhost
  gather_facts: false
  vars: {namespace: "{{ ansible_operator_meta.namespace }}", name: "{{ ansible_operator_meta.name }}"}
  environment:
    PATH: %q
    HOME: %q
  tasks:
  - when: name == 'kubectl'
    ansible.builtin.shell: |
      set -e
      kubectl -n {{ namespace }} delete configmap kubectl --ignore-not-found
      kubectl -n {{ namespace }} create configmap kubectl --from-literal value={{ value }}
      kubectl -n {{ namespace }} delete secret --all-namespaces=false -l of=kubectl
      kubectl -n {{ namespace }} create secret generic kubectl --from-literal value={{ value }}
      kubectl -n {{ namespace }} label secret kubectl of=kubectl
  - when: name == 'helm'
    ansible.builtin.command: helm -n {{ namespace }} upgrade --install rel {{ chart }} --history-max 2 --set value={{ value }}
    vars: {chart: %q}
  - when: name == 'helm-anew'
    ansible.builtin.shell: |
      set -e
      helm -n {{ namespace }} uninstall anew --ignore-not-found
      helm -n {{ namespace }} install anew {{ chart }} --set value={{ value }}
    vars: {chart: %[3]q}
  - when: name == 'typed' or name == 'insistent'
    ansible.builtin.command: "{{ program }} {{ namespace }} {{ name }} {{ value }}"
    vars: {program: %[4]q}
    environment:
      CHILDREN_TYPED_CLIENT: "application/vnd.kubernetes.protobuf{{ ',application/json' if name == 'typed' else '' }}"
`

var _ = Describe("the programs of a run", Label("long"), Ordered, func() {
	var p *operator
	names := []string{"kubectl", "helm", "helm-anew", "typed", "insistent"}
	custom := map[string]*unstructured.Unstructured{}
	BeforeAll(func(ctx context.Context) {
		p = newOperator(ctx, strings.ReplaceAll(watching(""), "content.yml", "clients.yml"), harness.Options{})
		program, err := os.Executable()
		Expect(err).NotTo(HaveOccurred())
		path := strings.Join([]string{filepath.Join(ground.Root, "bin", "controlplane"), filepath.Join(ground.Root, "bin", "tools"), os.Getenv("PATH")}, ":")
		home := filepath.Join(p.Dir, "tools")
		Expect(os.MkdirAll(home, 0o700)).To(Succeed())
		p.Write(map[string]string{
			"clients.yml":               fmt.Sprintf(clients, path, home, filepath.Join(p.Options.Project, "chart"), program),
			"chart/Chart.yaml":          "apiVersion: v2\nname: c\nversion: 0.1.0\n",
			"chart/templates/c.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-c'}\ndata: {value: '{{ .Values.value }}'}\n",
			"chart/templates/hook.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-hook', annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}}\n",
		})
		p.start(ctx)
		for _, name := range names {
			custom[name] = p.custom(name, map[string]any{"value": "v0"})
			Expect(k8s.Create(ctx, custom[name])).To(Succeed())
		}
	})

	It("bring their CR back by none of their writes: one run for each change of the CR", func(ctx context.Context) {
		for _, name := range names {
			Eventually(p.Ended(custom[name])).Should(Equal(1), name)
		}
		p.Watched(ctx, "configmaps", "secrets", "pods")
		for change := range 4 {
			for _, name := range names {
				Expect(k8s.Patch(ctx, custom[name].DeepCopy(), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"value":"v%d"}}`, change+1)))).To(Succeed())
			}
			for _, name := range names {
				Eventually(p.Ended(custom[name])).Should(BeNumerically(">=", change+2), name)
			}
		}
		for _, name := range names {
			p.Settles(custom[name], 5)
		}
		metrics, err := p.Metrics(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(metrics).NotTo(ContainSubstring("ensign_operator_unknown_writes_total{"))
	})

	It("reconcile it again when another client deletes the object after them", func(ctx context.Context) {
		child := p.configMap("rel-c")
		remove(ctx, child)
		Eventually(ctx, field(child, "data", "value")).Should(Equal("v4"))
		p.Settles(custom["helm"], 6)
	})
})
