package contract

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// keptVariables returns what a run of testdata/keep has written, once it has.
func keptVariables(s *site.Site, name, phase string) map[string]any {
	GinkgoHelper()
	var kept map[string]any
	Eventually(func() error {
		text, err := os.ReadFile(filepath.Join(s.Dir, name+"-"+phase+".json"))
		if err != nil {
			return err
		}
		return json.Unmarshal(text, &kept)
	}).Should(Succeed())
	return kept
}

var _ = Describe("variables", Ordered, ContinueOnFailure, func() {
	var (
		s    *site.Site
		kind = schema.GroupKind{Group: "my-group.example.com", Kind: "WideThing"}
		cr   *unstructured.Unstructured
		run  map[string]any
	)
	spec := map[string]any{
		"size": int64(3), "listOfMaps": []any{map[string]any{"innerKey": "valueStays"}}, "stronger": "CR", "fromWatch": "CR",
		"text": "{{ 6*7 }}", "enableHTTPS": true, "VIPAddress": "10.0.0.1", "URL": "u", "aB": "1",
		"groups": "all of them", "environment": map[string]any{"PATH": "/nowhere"},
	}
	create := func(ctx context.Context, name string, spec map[string]any) *unstructured.Unstructured {
		object := harness.Custom(kind, s.Namespace, name, spec)
		s.Create(ctx, object)
		return object
	}
	BeforeAll(func(ctx context.Context) {
		s = operator(ctx, "keep", kind.Group, kind.Kind)
		s.Start(ctx, "WideThing", "Secret")
		cr = create(ctx, "full", spec)
		run = keptVariables(s, "full", "run")
		Eventually(s.Ended(cr)).Should(Equal(1))
	})

	row("§3 order", "the spec, the operator's own, the watch's vars: later wins, and templates of the watch work", func() {
		Expect(run).To(And(HaveKeyWithValue("stronger", "watch"), HaveKeyWithValue("fromWatch", "full of 3"), HaveKeyWithValue("from_watch", "CR")))
	})
	row("§3 ansible_operator_meta", "has name and namespace, nothing else", func() {
		Expect(run).To(HaveKeyWithValue("ansible_operator_meta", Equal(map[string]any{"name": "full", "namespace": s.Namespace})))
	})
	row("§3 _<group>_<kind>, §3 names", "is the whole object without managedFields", func() {
		object, _ := run["_my_group_example_com_widething"].(map[string]any)
		Expect(object).To(And(HaveKeyWithValue("kind", "WideThing"), HaveKeyWithValue("apiVersion", "my-group.example.com/v1"), HaveKey("spec")))
		Expect(object["metadata"]).To(And(HaveKeyWithValue("uid", string(cr.GetUID())), Not(HaveKey("managedFields"))))
	})
	row("§3 _<group>_<kind>_spec", "is the spec as written", func() {
		Expect(run["_my_group_example_com_widething_spec"]).To(And(
			HaveKeyWithValue("enableHTTPS", true), HaveKeyWithValue("listOfMaps", Equal([]any{map[string]any{"innerKey": "valueStays"}})), HaveKeyWithValue("groups", "all of them")))
	})
	row("§3 untrusted", "no text of the CR is templated, wherever it stands", func() {
		Expect(run).To(HaveKeyWithValue("text", "{{ 6*7 }}"))
		Expect(run["_my_group_example_com_widething_spec"]).To(HaveKeyWithValue("text", "{{ 6*7 }}"))
	})
	row("§3 dropped names", "are Ansible's own, and one line of the log names them", func() {
		Expect(run).To(HaveKeyWithValue("groups", HaveKey("all")))
		Expect(run).To(HaveKeyWithValue("environment", BeEmpty()))
		text, err := s.Log()
		Expect(err).NotTo(HaveOccurred())
		Expect(regexp.MustCompile(`not passed to Ansible.*spec\.environment, spec\.groups`).FindAllString(text, -1)).To(HaveLen(1))
	})
	row("§4 depth", "keys at every depth, in lists; values stay", func() {
		Expect(run).To(HaveKeyWithValue("list_of_maps", Equal([]any{map[string]any{"inner_key": "valueStays"}})))
	})
	row("§4 surprises", "enableHTTPS, VIPAddress, URL, aB", func() {
		Expect(run).To(And(HaveKeyWithValue("enable_http_s", true), HaveKeyWithValue("_v_ip_address", "10.0.0.1"), HaveKeyWithValue("__url", "u"), HaveKeyWithValue("ab", "1"), HaveKeyWithValue("aB", "absent")))
	})
	row("§3 order with a finalizer, §3 finalizer never refused, §3 too much",
		"its vars win over all; what offends in the CR is left out", func(ctx context.Context) {
			patch(ctx, cr.DeepCopy(), `{"spec": {"omit": "theirs", "much": %q}}`, strings.Repeat("x", 1<<20+1))
			Eventually(ctx, s.Condition(cr, "Failure")).Should(HaveField("Reason", "InvalidSpec"))
			Expect(k8s.Delete(ctx, cr)).To(Succeed())
			final := keptVariables(s, "full", "final")
			Expect(final).To(And(HaveKeyWithValue("stronger", "finalizer"), HaveKeyWithValue("fromWatch", "full of 3"), HaveKeyWithValue("size", 3.0)))
			Expect(final).To(And(HaveKeyWithValue("much", "absent"), HaveKeyWithValue("omit", Not(Equal("theirs")))))
			ground.Gone(ctx, cr)
		})
	row("§3 names, §3 no spec", "the core group gives __secret, and an object without spec {}", func(ctx context.Context) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "core", Labels: map[string]string{"place": s.Namespace}}}
		s.Create(ctx, secret)
		kept := keptVariables(s, "core", "run")
		Expect(kept).To(And(HaveKeyWithValue("__secret", HaveKeyWithValue("kind", "Secret")), HaveKeyWithValue("__secret_spec", BeEmpty())))
	})

	row("§3 refused names", "InvalidSpec, no run, not tried again, and no finalizer", func(ctx context.Context) {
		object := create(ctx, "once", map[string]any{"omit": "x"})
		Eventually(ctx, s.Condition(object, "Failure")).Should(HaveField("Reason", "InvalidSpec"))
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		Consistently(ctx, versionOf(object), site.Calm).Should(Equal(object.GetResourceVersion()))
		Expect(object.GetFinalizers()).To(BeEmpty())
		Expect(s.Runs(object)()).To(BeZero())
	})
})
