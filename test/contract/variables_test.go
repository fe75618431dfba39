package contract

import (
	"context"
	_ "embed"
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

// snakeCaseTable has the keys that existing roles rely on, and what becomes of them.
//
//go:embed snake_case.tsv
var snakeCaseTable string

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
		// refused are gone, and had no run.
		refused []*unstructured.Unstructured
	)
	spec := map[string]any{
		"size": int64(3), "listOfMaps": []any{map[string]any{"innerKey": "valueStays"}}, "stronger": "CR", "fromWatch": "CR",
		"text": "{{ 6*7 }}", "enableHTTPS": true, "VIPAddress": "10.0.0.1", "URL": "u", "aB": "1",
		"groups": "all of them", "environment": map[string]any{"PATH": "/nowhere"},
		"table": tableKeys(0),
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
	row("§4 table", "each of its keys becomes what roles rely on", func() {
		Expect(run).To(HaveKeyWithValue("table", Equal(tableKeys(1))))
	})
	row("§3 order with a finalizer, §3 finalizer never refused", "its vars win over all; what offends in the CR is left out", func(ctx context.Context) {
		patch(ctx, cr.DeepCopy(), `{"spec": {"omit": "theirs", "much": %q}}`, strings.Repeat("x", 1<<20+1))
		Eventually(ctx, s.Condition(cr, "Failure")).Should(HaveField("Reason", "InvalidSpec"))
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		final := keptVariables(s, "full", "final")
		Expect(final).To(And(HaveKeyWithValue("stronger", "finalizer"), HaveKeyWithValue("fromWatch", "full of 3"), HaveKeyWithValue("size", 3.0)))
		Expect(final).To(And(HaveKeyWithValue("much", "absent"), HaveKeyWithValue("omit", Not(Equal("theirs")))))
		gone(ctx, cr)
	})
	row("§3 names, §3 no spec", "the core group gives __secret, and an object without spec {}", func(ctx context.Context) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "core", Labels: map[string]string{"place": s.Namespace}}}
		s.Create(ctx, secret)
		kept := keptVariables(s, "core", "run")
		Expect(kept).To(And(HaveKeyWithValue("__secret", HaveKeyWithValue("kind", "Secret")), HaveKeyWithValue("__secret_spec", BeEmpty())))
	})

	DescribeTable("that can't be built: InvalidSpec, no finalizer", func(ctx context.Context, spec map[string]any, says ...string) {
		object := harness.Custom(kind, s.Namespace, "", spec)
		object.SetGenerateName("refused-")
		s.Create(ctx, object)
		Eventually(ctx, s.Condition(object, "Failure")).Should(HaveField("Reason", "InvalidSpec"))
		failure, err := s.Condition(object, "Failure")(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, text := range says {
			Expect(failure.Message).To(ContainSubstring(text))
		}
		refused = append(refused, object)
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		Expect(object.GetFinalizers()).To(BeEmpty())
		Expect(k8s.Delete(ctx, object)).To(Succeed())
		gone(ctx, object)
	},
		entry("§3 refused names", "all of them are listed", map[string]any{"ansiblePythonInterpreter": "/bin/evil", "omit": "x", "group_names": "y"}, "ansible_python_interpreter", "omit", "group_names"),
		entry("§3 two keys of one name", "fooBar and foo_bar", map[string]any{"fooBar": "1", "foo_bar": "2"}, "fooBar", "foo_bar"),
		entry("§3 empty keys, §4 empty keys", `"" and " "`, map[string]any{"": "1", "in": map[string]any{" ": "2"}}, "empty"),
		entry("§3 too deep", "more than 64 levels", map[string]any{"deep": deep(70)}, "64"),
		entry("§3 too much", "more than 1 MiB", map[string]any{"much": strings.Repeat("x", 1<<20+1)}, "1048576 are allowed"),
	)

	row("§3 refused names", "nothing runs for what is refused, and nothing is tried again", func(ctx context.Context) {
		object := create(ctx, "once", map[string]any{"omit": "x"})
		Eventually(ctx, s.Condition(object, "Failure")).Should(HaveField("Reason", "InvalidSpec"))
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		Consistently(ctx, versionOf(object), site.Calm).Should(Equal(object.GetResourceVersion()))
		Expect(refused).To(HaveLen(5))
		for _, object := range append(refused, object) {
			Expect(s.Runs(object)()).To(BeZero())
		}
	})
})

// tableKeys returns a list of maps with a key each: those of the table, or what becomes
// of them.
func tableKeys(column int) []any {
	var list []any
	for line := range strings.Lines(snakeCaseTable) {
		list = append(list, map[string]any{strings.Split(strings.TrimSpace(line), "\t")[column]: "v"})
	}
	return list
}

// deep returns maps in maps.
func deep(levels int) any {
	var value any = "bottom"
	for range levels {
		value = map[string]any{"a": value}
	}
	return value
}
