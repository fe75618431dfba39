package contract

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/test/harness/script"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// holding is a playbook for managers with Script, which play gives its meaning.
const holding = "hold.yml"

// play is a run of managers with Script. It succeeds at once, unless it is holding: then
// it gives its kubeconfig away before, and waits until the CR's gate is there.
func play(r *script.Run) (int, error) {
	if filepath.Base(r.Playbook) != holding {
		return script.Succeed(r)
	}
	cr, err := r.Resource()
	if err != nil {
		return 0, err
	}
	place := filepath.Join(os.Getenv("KEEP"), (&unstructured.Unstructured{Object: cr}).GetName())
	text, err := os.ReadFile(os.Getenv("K8S_AUTH_KUBECONFIG"))
	info, errMode := os.Stat(os.Getenv("K8S_AUTH_KUBECONFIG"))
	if err = errors.Join(err, errMode); err != nil {
		return 0, err
	}
	if err := os.WriteFile(place+".kubeconfig", text, info.Mode()); err != nil {
		return 0, err
	}
	r.Event("playbook_on_task_start", map[string]any{"play": "Hold", "task": "Wait at the gate"})
	for err = os.ErrNotExist; err != nil; <-time.After(20 * time.Millisecond) {
		_, err = os.Stat(place + ".gate")
	}
	return script.Succeed(r)
}

// holder is a site whose runs are held: see hold.
func holder(ctx context.Context, watches string) *site.Site {
	GinkgoHelper()
	s := ground.Site(ctx, map[string]string{"watches.yaml": watches, holding: ""})
	s.Script()
	s.Options.Env = append(s.Options.Env, "KEEP="+s.Dir)
	return s
}

// held is a live run that is held, at whose place the test asks the API.
type held struct {
	site.Caller

	cr  *unstructured.Unstructured
	dir string
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
		h.Caller, err = site.NewCaller(text)
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
	references, annotated := site.Marks(h.cr, object)
	for _, reference := range references {
		Expect(reference).To(Equal(map[string]any{
			"apiVersion": h.cr.GetAPIVersion(), "kind": h.cr.GetKind(), "name": h.cr.GetName(), "uid": string(h.cr.GetUID()),
		}))
	}
	return strings.Repeat("reference", len(references)) + map[bool]string{true: "annotations"}[annotated]
}
