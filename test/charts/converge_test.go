package charts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// expectNothing waits until the CR is gone with its release and all objects.
func (l *faultLab) expectNothing(ctx context.Context, cr *unstructured.Unstructured, p *faultPlan) {
	GinkgoHelper()
	Eventually(ctx, objectNamed(l.Site, cr.GetName(), cr.DeepCopy())).Should(site.BeGone(), "%v", p)
	Eventually(ctx, statuses(l.Site, cr.GetName())).Should(BeEmpty(), "%v", p)
	for _, name := range objects {
		Eventually(ctx, objectNamed(l.Site, cr.GetName()+name, &corev1.ConfigMap{})).Should(site.BeGone(), "%v", p)
	}
}

// left returns the names of what CRs have left. Hooks' objects go with their owner: their
// removal is the garbage collector's, which learns of new kinds twice a minute.
func (l *faultLab) left(ctx context.Context) (names []string, err error) {
	list := &corev1.ConfigMapList{}
	err = k8s.List(ctx, list, client.InNamespace(l.Namespace))
	for _, item := range list.Items {
		if strings.HasPrefix(item.Name, subject) {
			names = append(names, item.Name)
		}
	}
	return names, err
}

// expectRelease waits for a release as its CR wants it: no more revisions than most, of which
// the last one alone is deployed; the objects, owned; and a status without a failure.
func (l *faultLab) expectRelease(ctx context.Context, cr *unstructured.Unstructured, phase string, most int) {
	GinkgoHelper()
	var all map[string]string
	// What Helm could not mark as superseded, the upgrade of the next period does.
	Eventually(ctx, func(ctx context.Context) (deployed []string, err error) {
		all, err = statuses(l.Site, cr.GetName())(ctx)
		for number, status := range all {
			if status == "deployed" {
				deployed = append(deployed, number)
			}
		}
		return deployed, err
	}).Should(HaveLen(1))
	last := len(all)
	Expect(last).To(And(BeNumerically(">=", slices.Index(phases, phase)+1), BeNumerically("<=", most)), "%v", all)
	for number, status := range all { // Helm also calls an attempt superseded that ended after its predecessor was.
		if number == fmt.Sprint(last) {
			Expect(status).To(Equal("deployed"), "%v", all)
		} else {
			Expect(status).To(BeElementOf("superseded", "failed"), "%v", all)
		}
	}
	owned := HaveField("OwnerReferences", ContainElement(HaveField("UID", cr.GetUID())))
	for _, name := range objects {
		object := &corev1.ConfigMap{}
		Expect(objectNamed(l.Site, cr.GetName()+name, object)(ctx)).To(Succeed())
		Expect(object).To(And(owned, HaveField("Data", Equal(map[string]string{"a": phase}))))
	}
	hook := &corev1.ConfigMap{}
	Expect(objectNamed(l.Site, cr.GetName()+"-hook", hook)(ctx)).To(Succeed())
	Expect(hook).To(owned)
	secret := &corev1.Secret{}
	Expect(objectNamed(l.Site, fmt.Sprintf("sh.helm.release.v1.%s.v%d", cr.GetName(), last), secret)(ctx)).To(Succeed())
	Expect(secret).To(And(HaveField("OwnerReferences", BeEmpty()), HaveField("Annotations", HaveKey("operator-sdk/primary-resource"))))
	for _, gone := range []string{"ReleaseFailed", "Irreconcilable"} {
		Expect(l.Condition(cr, gone)(ctx)).To(Equal(harness.Condition{}))
	}
	Expect(l.Condition(cr, "Deployed")(ctx)).To(HaveField("Status", "True"))
}
