package site

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Caller asks the API at the place of a run.
type Caller struct {
	Config *rest.Config
	HTTP   *http.Client
}

// NewCaller returns one that has the kubeconfig of a run.
func NewCaller(kubeconfig []byte) (c Caller, err error) {
	if c.Config, err = clientcmd.RESTConfigFromKubeConfig(kubeconfig); err == nil {
		c.HTTP, err = rest.HTTPClientFor(c.Config)
	}
	return c, err
}

// Ask sends a request with a body, as JSON unless it is a text, and with further headers
// ("Name", "value", …), and gives the code and the object of the answer.
func (c Caller) Ask(ctx context.Context, method, path string, body any, headers ...string) (code int, answer *unstructured.Unstructured) {
	ginkgo.GinkgoHelper()
	text, isText := body.(string)
	if !isText {
		encoded, err := json.Marshal(body)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		text = string(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.Config.Host+path, strings.NewReader(text))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.HTTP.Do(request)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	said, err := io.ReadAll(response.Body)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(response.Body.Close()).To(gomega.Succeed())
	answer = &unstructured.Unstructured{}
	_ = json.Unmarshal(said, &answer.Object) // What is no JSON is no object.
	return response.StatusCode, answer
}

// Do sends a request, which has to succeed, and gives the object.
func (c Caller) Do(ctx context.Context, method, path string, body any, headers ...string) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	code, answer := c.Ask(ctx, method, path, body, headers...)
	gomega.Expect(code).To(gomega.BeNumerically("<", http.StatusMultipleChoices), "%s %s: %v", method, path, answer.Object)
	return answer
}

// Marks returns the owner references of a child to the CR, and reports whether its
// annotations name the CR.
func Marks(cr, child *unstructured.Unstructured) (references []any, annotated bool) {
	all, _, _ := unstructured.NestedSlice(child.Object, "metadata", "ownerReferences")
	for _, reference := range all {
		if fields, ok := reference.(map[string]any); ok && fields["uid"] == string(cr.GetUID()) {
			references = append(references, reference)
		}
	}
	annotations := child.GetAnnotations()
	return references, annotations["operator-sdk/primary-resource"] == cr.GetNamespace()+"/"+cr.GetName() &&
		annotations["operator-sdk/primary-resource-type"] == cr.GroupVersionKind().GroupKind().String()
}
