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

// deedPlay does what the CR asks for by its "how".
const deedPlay = `
- name: Deeds
  hosts: localhost
  gather_facts: false
  tasks:
  - name: Hire a mate
    ansible.builtin.add_host: {name: mate, ansible_connection: local}
    changed_when: false
  - name: Change something
    ansible.builtin.debug: {msg: done}
    changed_when: true
  - name: Wait for a sign
    ansible.builtin.wait_for: {path: "{{ lookup('ansible.builtin.env', 'KEEP') }}/go", timeout: 600}
    when: how == "wait"
  - name: Fail plainly
    ansible.builtin.fail: {msg: "it went wrong"}
    when: how == "plain"
  - name: Fail without a word
    silent:
    when: how == "silent"
  - name: Fail in secret
    ansible.builtin.fail: {msg: "canary-4711"}
    no_log: true
    when: how == "hidden"
  - name: Fail at length
    ansible.builtin.fail: {msg: "{{ 'ä' * 5000 }}"}
    when: how == "long"
  - name: Fail and be rescued
    when: how == "rescued"
    block:
    - name: Fail inside
      ansible.builtin.fail: {msg: rescued}
    rescue:
    - name: Mend it
      ansible.builtin.debug: {msg: mended}
  - name: Fail and be ignored
    ansible.builtin.fail: {msg: ignored}
    ignore_errors: true
    when: how == "rescued"
  - name: Come again, by the bare name
    requeue_after: {time: "{{ after }}"}
    when: how == "bare"
  - name: Come again, by the older name
    operator_sdk.util.requeue_after: {time: "{{ after }}"}
    when: how == "older"
  - name: Come again, by our name
    ensign.operator.requeue_after: {time: "{{ after }}"}
    when: how == "ours"
  - name: Fail after all
    ansible.builtin.fail: {msg: "after all"}
    when: fails | default(false)
  - name: Fail at the API
    kubernetes.core.k8s:
      definition: {apiVersion: v1, kind: ConfigMap, metadata: {name: "Not_valid", namespace: "{{ ansible_operator_meta.namespace }}"}}
    when: how == "refused"
  - name: Show what the spec says
    ansible.builtin.debug: {msg: "{{ item }}"}
    loop: "{{ shown | default([]) }}"

- name: Deeds of the mate
  hosts: mate
  gather_facts: false
  tasks:
  - name: Change something else
    ansible.builtin.debug: {msg: done}
    changed_when: true
`

// deedBye is the finalizer's.
const deedBye = `
- name: Farewells
  hosts: localhost
  gather_facts: false
  tasks:
  - name: Show what the spec says
    ansible.builtin.debug: {msg: "{{ item }}"}
    loop: "{{ shown | default([]) }}"
  - name: Stay
    ansible.builtin.fail: {msg: "not yet"}
    when: stay | default(false)
`

const requeueModule = `#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule(argument_spec={"time": {"type": "str", "required": True}})
module.exit_json(changed=False, period=module.params["time"])
`

const deedWatches = `
- {group: deeds.example.com, version: v1, kind: Deed, playbook: deed.yml, finalizer: {name: deeds.example.com/finalizer, playbook: bye.yml}}
- {group: deeds.example.com, version: v1, kind: Loose, playbook: deed.yml, vars: {how: wait}}
- {group: deeds.example.com, version: v1, kind: Tick, playbook: bye.yml, reconcilePeriod: 1s}
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
	ground.Define(ctx, harness.Definition(kindOf("deeds", "Deed")), harness.Definition(kindOf("deeds", "Loose")), harness.Definition(kindOf("deeds", "Tick")))
	const collections = "collections/ansible_collections/"
	w.Site = ground.Site(ctx, map[string]string{
		"watches.yaml": deedWatches, "deed.yml": deedPlay, "bye.yml": deedBye,
		"library/requeue_after.py": requeueModule, "library/silent.py": "#!/usr/bin/python\nprint('{\"failed\": true}')\n",
		collections + "operator_sdk/util/plugins/modules/requeue_after.py": requeueModule, collections + "ensign/operator/plugins/modules/requeue_after.py": requeueModule,
	})
	w.Options.Args = append(w.Options.Args, "--zap-log-level=debug", "--ansible-collections-path=collections", "--max-backoff=3s")
	w.Options.Env = append(w.Options.Env, "KEEP="+w.Dir)
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
