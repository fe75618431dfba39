package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ensign-operator/ensign/test/harness/site"
)

// holdPlay gives its kubeconfig away, and waits until the CR's gate is there.
const holdPlay = `
- hosts: localhost
  gather_facts: false
  tasks:
  - name: Give the kubeconfig away
    ansible.builtin.copy:
      src: "{{ lookup('ansible.builtin.env', 'K8S_AUTH_KUBECONFIG') }}"
      dest: "{{ lookup('ansible.builtin.env', 'KEEP') }}/{{ ansible_operator_meta.name }}.kubeconfig"
      mode: preserve
  - name: Wait at the gate
    ansible.builtin.wait_for: {path: "{{ lookup('ansible.builtin.env', 'KEEP') }}/{{ ansible_operator_meta.name }}.gate", sleep: 1}
`

// held is a live run of holdPlay, at whose place the test asks the API.
type held struct {
	cr     *unstructured.Unstructured
	dir    string
	config *rest.Config
	http   *http.Client
}

// hold waits for the live run of the CR.
func hold(s *site.Site, cr *unstructured.Unstructured) *held {
	GinkgoHelper()
	h := &held{cr: cr, dir: s.Dir}
	Eventually(func() error {
		text, err := os.ReadFile(h.kubeconfig())
		if err != nil {
			return err
		}
		if h.config, err = clientcmd.RESTConfigFromKubeConfig(text); err != nil {
			return err
		}
		h.http, err = rest.HTTPClientFor(h.config)
		return err
	}).Should(Succeed())
	return h
}

func (h *held) kubeconfig() string { return filepath.Join(h.dir, h.cr.GetName()+".kubeconfig") }

// release lets the run end, and later ones not wait.
func (h *held) release() {
	GinkgoHelper()
	Expect(os.WriteFile(filepath.Join(h.dir, h.cr.GetName()+".gate"), nil, 0o600)).To(Succeed())
}

// answer is what came back for a request.
type answer struct {
	code   int
	header http.Header
	object *unstructured.Unstructured
}

// ask sends a request, with further headers ("Name: value" as two), and gives the answer.
func (h *held) ask(ctx context.Context, method, path string, body any, headers ...string) answer {
	GinkgoHelper()
	data, err := json.Marshal(body)
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, method, h.config.Host+path, bytes.NewReader(data))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := h.http.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	a := answer{response.StatusCode, response.Header, &unstructured.Unstructured{}}
	_ = json.Unmarshal(text, &a.object.Object) // What is no JSON is no object.
	return a
}

// wrote asks for a write, which has to succeed.
func (h *held) wrote(ctx context.Context, method, path string, body any, headers ...string) *unstructured.Unstructured {
	GinkgoHelper()
	a := h.ask(ctx, method, path, body, headers...)
	Expect(a.code).To(Or(Equal(http.StatusOK), Equal(http.StatusCreated)), "%s %s: %v", method, path, a.object.Object)
	return a.object
}

// configMaps is where those of a namespace are.
func configMaps(namespace string, name ...string) string {
	path := "/api/v1/namespaces/" + namespace + "/configmaps"
	if len(name) > 0 {
		path += "/" + name[0]
	}
	return path
}

func configMap(name, value string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"a": value}}
}

// marks says how an object belongs to the CR: "reference", "annotations", both, or "".
func (h *held) marks(object *unstructured.Unstructured) string {
	GinkgoHelper()
	var marks string
	for _, reference := range object.GetOwnerReferences() {
		if reference.UID == h.cr.GetUID() {
			Expect(reference.Controller).To(BeNil())
			Expect(reference.BlockOwnerDeletion).To(BeNil())
			Expect(reference.Kind + "/" + reference.Name).To(Equal(h.cr.GetKind() + "/" + h.cr.GetName()))
			marks += "reference"
		}
	}
	annotations := object.GetAnnotations()
	if annotations["operator-sdk/primary-resource"] == fmt.Sprintf("%s/%s", h.cr.GetNamespace(), h.cr.GetName()) &&
		annotations["operator-sdk/primary-resource-type"] == h.cr.GetKind()+"."+h.cr.GroupVersionKind().Group {
		marks += "annotations"
	}
	return marks
}
