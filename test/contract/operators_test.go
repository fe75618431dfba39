package contract

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// operator returns a site with an operator of testdata, whose kinds are defined, by the
// first that comes. KEEP is the site's directory.
func operator(ctx context.Context, name, group string, kinds ...string) *site.Site {
	GinkgoHelper()
	for _, kind := range kinds {
		definition := harness.Definition(schema.GroupKind{Group: group, Kind: kind})
		if apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(definition), definition.DeepCopy())) {
			ground.Define(ctx, definition)
		}
	}
	s := ground.Site(ctx, nil)
	s.Options.Env = append(s.Options.Env, "KEEP="+s.Dir)
	Expect(os.CopyFS(s.Options.Project, os.DirFS(filepath.Join("testdata", name)))).To(Succeed())
	return s
}

// read returns the object as it stands, once it is there.
func read[T client.Object](ctx context.Context, namespace, name string, object T) T {
	GinkgoHelper()
	object.SetNamespace(namespace)
	object.SetName(name)
	Eventually(ctx, func(ctx context.Context) error { return k8s.Get(ctx, client.ObjectKeyFromObject(object), object) }).Should(Succeed())
	return object
}

func owners(object client.Object) []string {
	names := []string{}
	for _, reference := range object.GetOwnerReferences() {
		names = append(names, reference.Kind+"/"+reference.Name)
	}
	return names
}

var _ = Describe("an operator for the base image", Label("long"), func() {
	// A test can't write /etc/ansible/ansible.cfg: ANSIBLE_CONFIG names the file.
	row("§operators playbook-based", "ANSIBLE_INVENTORY with group_vars, a filter plugin, ansible.cfg", func(ctx context.Context) {
		s := operator(ctx, "playbook", "inn.example.com", "Welcome")
		s.Options.Env = append(s.Options.Env,
			"ANSIBLE_INVENTORY="+filepath.Join(s.Options.Project, "inventory"), "ANSIBLE_CONFIG="+filepath.Join(s.Options.Project, "ansible.cfg"))
		s.Start(ctx, "Welcome")
		cr := harness.Custom(schema.GroupKind{Group: "inn.example.com", Kind: "Welcome"}, s.Namespace, "ada", map[string]any{"guestNames": []any{"Ada", "Grace"}})
		s.Create(ctx, cr)
		s.Settles(cr, 1)
		card := read(ctx, s.Namespace, "ada-card", &corev1.ConfigMap{})
		Expect(card.Data).To(Equal(map[string]string{
			"house": "The Anchor", "greeting": "Welcome, Ada and Grace!", "kitchen": "Soup is ready", "uid": string(cr.GetUID()),
		}))
		Expect(owners(card)).To(ConsistOf("Welcome/ada"))
		success, err := s.Condition(cr, "Successful")(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(success.Status).To(Equal("True"))
		Expect(success.Result).To(And(HaveKeyWithValue("ok", int64(3)), HaveKeyWithValue("changed", int64(1)), HaveKeyWithValue("skipped", int64(1)), HaveKeyWithValue("failures", int64(0))))
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		ground.Gone(ctx, cr)
	})

	row("§operators role-based", "FQCN roles of a collection, a vault, trusted vars, keys as they are", func(ctx context.Context) {
		s := operator(ctx, "role", "shop.example.com", "Webshop")
		password := filepath.Join(s.Dir, "the password")
		Expect(os.WriteFile(password, []byte("open sesame\n"), 0o600)).To(Succeed())
		s.Options.Env = append(s.Options.Env, "ANSIBLE_COLLECTIONS_PATH="+filepath.Join(s.Options.Project, "collections"))
		s.Options.Args = append(s.Options.Args, "--ansible-args='--vault-password-file \""+password+"\"'")
		s.Start(ctx, "Webshop")
		s.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "closed"}})
		cr := harness.Custom(schema.GroupKind{Group: "shop.example.com", Kind: "Webshop"}, s.Namespace, "corner", map[string]any{
			"maxItems": int64(3), "offers": []any{map[string]any{"listPrice": 2.5}, map[string]any{"listPrice": int64(4)}},
			"deliveryAreas": []any{map[string]any{"postCode": "10115"}, map[string]any{"postCode": "10117"}},
		})
		s.Create(ctx, cr)
		s.Settles(cr, 1)
		window := read(ctx, s.Namespace, "corner-window", &corev1.ConfigMap{})
		Expect(window.Data).To(Equal(map[string]string{"prices": "2.50 EUR, 4.00 EUR", "maxItems": "3", "deliversTo": "10115,10117", "facts": "True"}))
		till := read(ctx, s.Namespace, "corner-till", &corev1.Secret{})
		Expect(till.Data).To(And(HaveKeyWithValue("code", []byte("4711")), HaveKeyWithValue("key", []byte("sk-shop"))))
		Expect([][]string{owners(window), owners(till)}).To(HaveEach(ConsistOf("Webshop/corner")))
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		ground.Gone(ctx, cr)
		Expect(read(ctx, s.Namespace, "closed", &corev1.ConfigMap{}).Data).To(Equal(map[string]string{"sign": "corner is closed", "money": "5.00 EUR"}))
		Expect(s.Log()).NotTo(Or(ContainSubstring("4711"), ContainSubstring("sk-shop"), ContainSubstring("open sesame")))
	})
})
