package contract

import (
	"context"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const requeueModule = `#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule(argument_spec={"time": {"type": "str", "required": True}})
module.exit_json(changed=False, period=module.params["time"])
`

// deeds are CRs that do what they are told, and what has been seen of them.
type deeds struct {
	*site.Site

	good, plain, hang *unstructured.Unstructured
	seen              *history
}

func (w *deeds) custom(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return harness.Custom(kindOf("deeds", kind), w.Namespace, name, spec)
}

// deed creates a CR.
func (w *deeds) deed(ctx context.Context, name string, spec map[string]any) *unstructured.Unstructured {
	GinkgoHelper()
	cr := w.custom("Deed", name, spec)
	w.Create(ctx, cr)
	return cr
}

func (w *deeds) begin(ctx context.Context) {
	GinkgoHelper()
	const collections = "collections/ansible_collections/"
	w.Site = operator(ctx, "deeds", "deeds.example.com", "Deed", "Loose", "Tick")
	w.Write(map[string]string{
		"library/requeue_after.py": requeueModule, "library/silent.py": "#!/usr/bin/python\nprint('{\"failed\": true}')\n",
		collections + "operator_sdk/util/plugins/modules/requeue_after.py": requeueModule, collections + "ensign/operator/plugins/modules/requeue_after.py": requeueModule,
		"../more/ansible_collections/my/own/MANIFEST.json": `{"collection_info": {"version": "1.0.0"}}`,
	})
	w.Options.Args = append(w.Options.Args, "--zap-log-level=debug", "--ansible-collections-path=collections:../more", "--max-backoff=3s")
	w.seen = follow(w.Namespace, "Deed")
	w.Start(ctx, "Deed", "Loose", "Tick")
	w.good = w.deed(ctx, "good", map[string]any{"how": "good"})
	w.plain = w.deed(ctx, "plain", map[string]any{"how": "plain"})
}

// history has all states of the CRs of a kind that a watch has told of.
type history struct {
	mu     sync.Mutex
	states map[string][]*unstructured.Unstructured
}

func follow(namespace, kind string) *history {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("deeds.example.com/v1")
	list.SetKind(kind + "List")
	events, err := k8s.Watch(ctx, list, client.InNamespace(namespace))
	Expect(err).NotTo(HaveOccurred())
	h := &history{states: map[string][]*unstructured.Unstructured{}}
	go func() {
		for event := range events.ResultChan() {
			if cr, ok := event.Object.(*unstructured.Unstructured); ok {
				h.mu.Lock()
				h.states[cr.GetName()] = append(h.states[cr.GetName()], cr)
				h.mu.Unlock()
			}
		}
	}()
	return h
}

func (h *history) of(name string) []*unstructured.Unstructured {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.states[name])
}

func (h *history) names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for name := range h.states {
		names = append(names, name)
	}
	return names
}

// during returns the states of a CR as each run of the generation began: later the
// message of a long one names its task.
func (h *history) during(name string, generation int64) func() []*unstructured.Unstructured {
	return func() []*unstructured.Unstructured {
		var found []*unstructured.Unstructured
		for _, cr := range h.of(name) {
			if running := harness.ConditionOf(cr, "Running"); running.Message == "Running reconciliation" && running.Generation == generation {
				found = append(found, cr)
			}
		}
		return found
	}
}
