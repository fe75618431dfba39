package contract

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// sayTasks write what a run knows into a file of its own, as JSON.
//
//go:embed testdata/settings/say.yml
var sayTasks string

const sayPlay = `
- hosts: localhost
  gather_facts: false
  tasks:
  - ansible.builtin.import_tasks: roles/own/tasks/main.yml
`

// said is what a run knew.
type said struct {
	Role        string         `json:"role"`
	Phase       string         `json:"phase"`
	Verbosity   int            `json:"verbosity"`
	Vars        map[string]any `json:"vars"`
	Groups      []string       `json:"groups"`
	Facts       int            `json:"facts"`
	Environment []string       `json:"environment"`
	Server      string         `json:"server"`
}

// sayings returns what the runs of a CR said so far, in their order.
func sayings(s *site.Site, name string) func() ([]said, error) {
	return func() ([]said, error) {
		files, err := filepath.Glob(filepath.Join(s.Dir, name+"-*.json"))
		if err != nil {
			return nil, err
		}
		var all []said
		for _, file := range files { // Sorted by their names, which are times.
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			var one said
			if err := json.Unmarshal(text, &one); err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		return all, nil
	}
}

// lastSaid waits until runs of the CR have ended that often, and gives what the last one said.
func lastSaid(s *site.Site, cr client.Object, runs int) said {
	GinkgoHelper()
	Eventually(s.Ended(cr)).Should(BeNumerically(">=", runs))
	all, err := sayings(s, cr.GetName())()
	Expect(err).NotTo(HaveOccurred())
	Expect(all).NotTo(BeEmpty())
	return all[len(all)-1]
}

// patch changes an object by a merge patch.
func patch(ctx context.Context, object client.Object, text string, args ...any) {
	GinkgoHelper()
	Expect(k8s.Patch(ctx, object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, text, args...)))).To(Succeed())
}

const steering = "ansible.sdk.operatorframework.io/"

// annotate gives an annotation a value, or takes it away: null.
func annotate(ctx context.Context, object client.Object, name, value string) {
	GinkgoHelper()
	patch(ctx, object, `{"metadata": {"annotations": {%q: %s}}}`, name, value)
}

// pauses are those that followed the attempts of a CR, as the log for debugging tells.
func pauses(s *site.Site, cr client.Object) func() ([]string, error) {
	name := strings.TrimPrefix(cr.GetNamespace()+"/"+cr.GetName(), "/")
	line := regexp.MustCompile(`reconcile finished.*"object": "` + regexp.QuoteMeta(name) + `".*"requeueAfter": "([^"]*)"`)
	return func() ([]string, error) {
		text, err := s.Log()
		var all []string
		for _, found := range line.FindAllStringSubmatch(text, -1) {
			all = append(all, found[1])
		}
		return all, err
	}
}

// comesAgain is the pause until a CR comes again by itself, after its last attempt.
func comesAgain(s *site.Site, cr client.Object) func() (string, error) {
	return func() (string, error) {
		all, err := pauses(s, cr)()
		return append([]string{""}, all...)[len(all)], err
	}
}

//go:embed testdata/settings/watches.yaml
var settingsWatches string

// settingsProject has a role in each place where one may be.
func settingsProject() map[string]string {
	files := map[string]string{
		"watches.yaml": "", "deploy/my-watches.yaml": settingsWatches, "say.yml": sayPlay,
		"inventory/hosts":               "[crew]\nlocalhost ansible_connection=local\n",
		"inventory/group_vars/crew.yml": "shift: night\n",
		"vault":                         "a password\n",
	}
	for _, role := range []string{
		"roles/own", "roles/bye", "shared/absolute", "shared/pathed", "shared/roles/below", "roles/pathed", "collections/ansible_collections/contract/things/roles/say",
	} {
		files[role+"/tasks/main.yml"] = sayTasks
	}
	return files
}

// settings is an operator whose settings come from all places where they may.
type settings struct {
	*site.Site

	one, two, realm, bare, below, packed *unstructured.Unstructured
	secret                               *corev1.Secret
	configMap                            *corev1.ConfigMap
}

func kindOf(group, kind string) schema.GroupKind {
	return schema.GroupKind{Group: group + ".example.com", Kind: kind}
}

func settingsDefinitions() []*apiextensionsv1.CustomResourceDefinition {
	realm, bare := harness.Definition(kindOf("one", "Realm")), harness.Definition(kindOf("one", "Bare"))
	realm.Spec.Scope = apiextensionsv1.ClusterScoped
	bare.Spec.Versions[0].Subresources = nil
	return []*apiextensionsv1.CustomResourceDefinition{
		harness.Definition(kindOf("one", "Thing")), harness.Definition(kindOf("two", "Thing")), harness.Definition(kindOf("one", "Below")),
		harness.Definition(kindOf("one", "Packed")), realm, bare,
	}
}

func (w *settings) begin(ctx context.Context) {
	GinkgoHelper()
	ground.Define(ctx, settingsDefinitions()...)
	w.Site = ground.Site(ctx, settingsProject())
	shared := filepath.Join(w.Options.Project, "shared")
	w.Options.Args = append(w.Options.Args,
		"--watches-file=deploy/my-watches.yaml", "--ansible-roles-path="+shared+":roles", "--ansible-collections-path=./collections",
		`--ansible-args=--extra-vars 'spoken="two words"'`, "--ansible-verbosity=1", "--max-verbosity=5", "--drop-env=DROPPED,ALSO_DROPPED", "--zap-log-level=debug",
	)
	w.Options.Env = append(w.Options.Env,
		"KEEP="+w.Dir, "SHARED="+shared, "ANSIBLE_ROLES_PATH=/nowhere", "ANSIBLE_COLLECTIONS_PATH=/nowhere", "ANSIBLE_GATHERING=explicit", "ANSIBLE_INVENTORY=inventory",
		"ANSIBLE_VERBOSITY_THING_ONE_EXAMPLE_COM=3", "WORKER_THING_ONE_EXAMPLE_COM=9", "MAX_CONCURRENT_RECONCILES_THING_ONE_EXAMPLE_COM=1", "ANSIBLE_VERBOSITY_NOTHING_EXAMPLE_COM=1",
		"ANSIBLE_VAULT_PASSWORD_FILE="+filepath.Join(w.Options.Project, "vault"), "ANSIBLE_RETRY_FILES_SAVE_PATH=/tmp/retry", "RELATED_IMAGE_DB=registry.example.com/db:1",
		"OWN=sesame-4711", "DROPPED=1", "ALSO_DROPPED=1", "KUBERNETES_SERVICE_PORT=1",
	)
	w.Start(ctx, "Thing", "Realm", "Bare", "Below", "Packed", "Secret", "ConfigMap")
	spec := map[string]any{"size": int64(3), "camelCase": "kept", "text": "{{ 6*7 }}"}
	custom := func(group, kind, name string) *unstructured.Unstructured {
		return harness.Custom(kindOf(group, kind), w.Namespace, name, maps.Clone(spec))
	}
	w.one, w.two, w.bare, w.below, w.packed = custom("one", "Thing", "one"), custom("two", "Thing", "two"), custom("one", "Bare", "bare"), custom("one", "Below", "below"), custom("one", "Packed", "packed")
	w.realm = custom("one", "Realm", "realm")
	w.realm.SetNamespace("")
	watched := map[string]string{"watched": "yes"}
	w.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "secret", Labels: watched}}
	w.configMap = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "configmap", Labels: watched}}
	w.Create(ctx, w.one, w.two, w.realm, w.bare, w.below, w.packed, w.secret, w.configMap)
}
