package site

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// strangers returns functions that give an object to somebody else than the CR: to nobody, to another
// CR of the kind, or to a Helm release.
func strangers() map[string]func(object, another *unstructured.Unstructured) {
	return map[string]func(object, another *unstructured.Unstructured){
		"nobody": func(*unstructured.Unstructured, *unstructured.Unstructured) {},
		"another": func(object, another *unstructured.Unstructured) {
			object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: another.GetAPIVersion(), Kind: another.GetKind(), Name: another.GetName(), UID: another.GetUID()}})
		},
		"release": func(object, another *unstructured.Unstructured) {
			labels := map[string]string{"app.kubernetes.io/managed-by": "Helm"}
			maps.Copy(labels, object.GetLabels())
			object.SetLabels(labels)
			object.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "theirs", "meta.helm.sh/release-namespace": another.GetNamespace()})
		},
	}
}

// Stranger is an object of somebody else that has the name and the labels of one of a CR, and that CR.
type Stranger struct {
	ground *Ground
	// Called says which object it is, and whose.
	Called string
	CR     *unstructured.Unstructured
	Object *unstructured.Unstructured
	given  *unstructured.Unstructured
}

// Strangers makes a namespace for each object and each owner that it can have, with that object, and then a
// CR like the given one.
func (g *Ground) Strangers(ctx context.Context, cr *unstructured.Unstructured, objects ...*unstructured.Unstructured) (made []*Stranger) {
	ginkgo.GinkgoHelper()
	owners := strangers()
	for _, object := range objects {
		for _, who := range slices.Sorted(maps.Keys(owners)) {
			namespace := g.Namespace(ctx)
			another := bare(cr, namespace)
			another.SetName("another")
			another.SetAnnotations(map[string]string{"ansible.sdk.operatorframework.io/paused": "true", "helm.sdk.operatorframework.io/paused": "true"})
			g.Create(ctx, another)
			s := &Stranger{ground: g, Called: fmt.Sprintf("%s/%s of %s", object.GetKind(), object.GetName(), who), CR: bare(cr, namespace), Object: bare(object, namespace)}
			owners[who](s.Object, another)
			s.given = s.Object.DeepCopy()
			g.Create(ctx, s.Object)
			made = append(made, s)
		}
	}
	for _, s := range made {
		g.Create(ctx, s.CR)
	}
	return made
}

// Settle waits until each CR is as its matcher wants it, in any order. Such a CR is paused at once: repeated runs
// would take the slots of those that have not begun. Its stranger has to be unchanged.
func (g *Ground) Settle(ctx context.Context, made []*Stranger, wanted func(*Stranger) types.GomegaMatcher) {
	ginkgo.GinkgoHelper()
	pending := slices.Clone(made)
	gomega.Eventually(ctx, func(ctx context.Context) (faults []string, err error) {
		pending = slices.DeleteFunc(pending, func(s *Stranger) bool {
			matcher := wanted(s)
			var is bool
			if err == nil {
				err = g.Client.Get(ctx, client.ObjectKeyFromObject(s.CR), s.CR)
			}
			if err == nil {
				is, err = matcher.Match(s.CR)
			}
			if err == nil && is {
				err = s.patch(ctx, `"true"`, "{}")
			}
			if err == nil && !is {
				faults = append(faults, s.Called+": "+matcher.FailureMessage(s.CR))
			}
			return err == nil && is
		})
		return faults, err
	}).Should(gomega.BeEmpty())
	for _, s := range made {
		s.IsUnchanged(ctx)
	}
}

// Condition is a matcher for a CR whose condition of that type matches.
func Condition(kind string, matcher types.GomegaMatcher) types.GomegaMatcher {
	return gomega.WithTransform(func(cr *unstructured.Unstructured) harness.Condition { return harness.ConditionOf(cr, kind) }, matcher)
}

// Change patches the spec of a stranger's CR, which is paused no more.
func (s *Stranger) Change(ctx context.Context, spec string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(s.patch(ctx, "null", spec)).To(gomega.Succeed())
}

// patch sets the annotations by which a CR of a role or of a chart is paused, and fields of the spec.
func (s *Stranger) patch(ctx context.Context, paused, spec string) error {
	text := fmt.Appendf(nil, `{"metadata": {"annotations": {"ansible.sdk.operatorframework.io/paused": %[1]s, "helm.sdk.operatorframework.io/paused": %[1]s}}, "spec": %[2]s}`, paused, spec)
	return s.ground.Client.Patch(ctx, s.CR, client.RawPatch(apitypes.MergePatchType, text))
}

// IsUnchanged fails the spec unless the object is as it was made: the same one, with what its owner has
// said of it, and with no other owner.
func (s *Stranger) IsUnchanged(ctx context.Context) {
	ginkgo.GinkgoHelper()
	gomega.Expect(s.Changed(ctx)).To(gomega.BeEmpty(), s.Called)
}

// Changed says what has been done to the object, "" if nothing.
func (s *Stranger) Changed(ctx context.Context) (string, error) {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(s.Object.GroupVersionKind())
	err := s.ground.Client.Get(ctx, client.ObjectKeyFromObject(s.Object), now)
	switch {
	case apierrors.IsNotFound(err) || err == nil && now.GetUID() != s.Object.GetUID():
		return "it was deleted", nil
	case err != nil:
		return "", err
	case now.GetDeletionTimestamp() != nil:
		return "it is being deleted", nil
	case !equality.Semantic.DeepEqual(now.GetOwnerReferences(), s.Object.GetOwnerReferences()):
		return fmt.Sprintf("its owners are %v", now.GetOwnerReferences()), nil
	case !equality.Semantic.DeepEqual(now.GetLabels(), s.Object.GetLabels()):
		return fmt.Sprintf("its labels are %v", now.GetLabels()), nil
	case !equality.Semantic.DeepDerivative(s.given.Object, now.Object):
		return fmt.Sprintf("it is %v", now.Object), nil
	}
	return "", nil
}

// Owned returns the objects of the kinds that belong to a CR, as somebody else could make them.
func (g *Ground) Owned(ctx context.Context, cr *unstructured.Unstructured, kinds ...schema.GroupVersionKind) (found []*unstructured.Unstructured) {
	ginkgo.GinkgoHelper()
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		gomega.Expect(g.Client.List(ctx, list, client.InNamespace(cr.GetNamespace()))).To(gomega.Succeed())
		for i := range list.Items {
			if slices.ContainsFunc(list.Items[i].GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == cr.GetUID() }) {
				found = append(found, bare(&list.Items[i], ""))
			}
		}
	}
	return found
}

// bare returns an object as it could be made anew in a namespace.
func bare(object *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range object.DeepCopy().Object {
		if key != "metadata" && key != "status" {
			made.Object[key] = value
		}
	}
	made.SetName(object.GetName())
	made.SetNamespace(namespace)
	made.SetLabels(object.GetLabels())
	for _, given := range [][]string{{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "volumeName"}} {
		if value, _, _ := unstructured.NestedString(made.Object, given...); value != "None" {
			unstructured.RemoveNestedField(made.Object, given...)
		}
	}
	return made
}

// DeleteStrangersCRs deletes the CRs beside the strangers, and waits until they are gone.
func (g *Ground) DeleteStrangersCRs(ctx context.Context, made []*Stranger) {
	ginkgo.GinkgoHelper()
	for _, s := range made {
		gomega.Expect(client.IgnoreNotFound(g.Client.Delete(ctx, s.CR))).To(gomega.Succeed(), s.Called)
	}
	for _, s := range made {
		gomega.Eventually(ctx, func() bool {
			return apierrors.IsNotFound(g.Client.Get(ctx, client.ObjectKeyFromObject(s.CR), s.CR.DeepCopy()))
		}).Should(gomega.BeTrue(), s.Called)
	}
}

// Mutant returns the directory of a copy of a project of roles in which a regular expression of one file, which
// has to match once, is replaced. It is removed with the spec.
func Mutant(project, file, from, to string) string {
	ginkgo.GinkgoHelper()
	project, err := filepath.Abs(project)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	copied := ginkgo.GinkgoT().TempDir()
	for _, name := range []string{"watches.yaml", "playbooks"} {
		gomega.Expect(os.Symlink(filepath.Join(project, name), filepath.Join(copied, name))).To(gomega.Succeed())
	}
	gomega.Expect(os.CopyFS(filepath.Join(copied, "roles"), os.DirFS(filepath.Join(project, "roles")))).To(gomega.Succeed())
	path, pattern := filepath.Join(copied, file), regexp.MustCompile(from)
	text, err := os.ReadFile(path)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(pattern.FindAll(text, -1)).To(gomega.HaveLen(1), "%s has changed: adapt the mutant", file)
	gomega.Expect(os.WriteFile(path, pattern.ReplaceAllLiteral(text, []byte(to)), 0o600)).To(gomega.Succeed())
	return copied
}

// AnyChanged says what has been done to one of the objects, "" if nothing to any.
func AnyChanged(ctx context.Context, made []*Stranger) (string, error) {
	for _, s := range made {
		if changed, err := s.Changed(ctx); changed != "" || err != nil {
			return s.Called + ": " + changed, err
		}
	}
	return "", nil
}
