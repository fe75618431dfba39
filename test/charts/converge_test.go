package charts

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/chart/ledger"
	"github.com/ensign-operator/ensign/test/faults/apiproxy"
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
	Expect(isGone(priorityClass(l.Site, cr.GetName()))(ctx)).To(site.BeGone(), "%v", p)
	Expect(l.entry(ctx, cr)).To(BeNil(), "%v", p)
}

// entry returns what the ledger has of a CR; nil if it has nothing.
func (l *faultLab) entry(ctx context.Context, cr *unstructured.Unstructured) (*ledger.Entry, error) {
	var all corev1.ConfigMapList
	if err := k8s.List(ctx, &all, client.InNamespace(l.Namespace), client.HasLabels{ledger.Label}); err != nil {
		return nil, err
	}
	var found *ledger.Entry
	for _, object := range all.Items {
		one := &ledger.Entry{}
		if err := json.Unmarshal([]byte(object.Data["entry"]), one); err != nil {
			return nil, err
		}
		if one.Owner.Name == cr.GetName() {
			found = one
		}
	}
	return found, nil
}

// expectEntry expects that the ledger names the records of the release, with their states, and that it names the
// objects of the last one as its manifest does.
func (l *faultLab) expectEntry(ctx context.Context, cr *unstructured.Unstructured, statuses map[string]string, p *faultPlan) {
	GinkgoHelper()
	entry, err := l.entry(ctx, cr)
	Expect(err).NotTo(HaveOccurred())
	Expect(entry).NotTo(BeNil(), "%v", p)
	Expect(entry.Attempt).To(BeEmpty(), "%v", p)
	known := map[string]string{}
	for _, revision := range entry.Revisions {
		known[fmt.Sprint(revision.Version)] = revision.Status
	}
	Expect(known).To(Equal(statuses), "%v", p)
	var names, want []string
	for _, o := range entry.Last().Objects {
		names = append(names, o.Kind+" "+o.Name)
	}
	for _, name := range objects {
		want = append(want, "ConfigMap "+cr.GetName()+name)
	}
	Expect(names).To(ConsistOf(append(want, "PriorityClass "+priorityClass(l.Site, cr.GetName()).Name)), "%v", p)
}

// attemptID finds the attempt that an entry of the ledger has as begun.
var attemptID = regexp.MustCompile(`\\"attempt\\":\\"(\w+)\\",\\"action\\"`)

// expectHooks expects by the writes of a phase that each attempt has run each hook once at most, that the first
// attempt has run them if there was no other, and that none has after one has reached what the CR wants.
func (l *faultLab) expectHooks(cr *unstructured.Unstructured, journal []apiproxy.Request, p *faultPlan) {
	GinkgoHelper()
	runs, attempts, attempt, records, done := map[string]map[string]int{"-pre": {}, "-post": {}}, 0, "", 0, false
	for _, r := range journal {
		if !r.Applied() {
			continue
		}
		begun, record := attemptID.FindSubmatch(r.Body), r.Resource == "secrets" && bytes.Contains(r.Body, []byte(`"name":"sh.helm.release.v1.`+cr.GetName()+`.v`))
		of := runs[strings.TrimPrefix(r.Name, cr.GetName())]
		switch {
		case begun != nil && string(begun[1]) != attempt:
			attempt, records = string(begun[1]), 0
			attempts++
		case record && r.Verb == "create": // The second one of an attempt brings the former revision back.
			records++
			done = false
		case record && records == 1 && bytes.Contains(r.Body, []byte(`"status":"deployed"`)), record && bytes.Contains(r.Body, []byte(`"status":"uninstalled"`)):
			done = true
		case of != nil && r.Verb == "patch":
			Expect(done).To(BeFalse(), "%v: hook %s after all was done", p, r.Name)
			of[attempt]++
		}
	}
	for hook, of := range runs {
		Expect(of).To(And(Not(BeEmpty()), HaveEach(1)), "%v: hook %s in %d attempts", p, hook, attempts)
	}
	Expect(p != nil || attempts == 1).To(BeTrue(), "%d attempts", attempts)
}

// expectManifest expects the objects of a record's manifest as they are in it.
func (l *faultLab) expectManifest(ctx context.Context, secret *corev1.Secret) {
	GinkgoHelper()
	packed, err := base64.StdEncoding.DecodeString(string(secret.Data["release"]))
	Expect(err).NotTo(HaveOccurred())
	text, err := gzip.NewReader(bytes.NewReader(packed))
	Expect(err).NotTo(HaveOccurred())
	var record struct {
		Manifest string `json:"manifest"`
	}
	Expect(json.NewDecoder(text).Decode(&record)).To(Succeed())
	documents := strings.Split(record.Manifest, "---\n")[1:]
	Expect(documents).To(HaveLen(len(objects) + 1))
	for _, document := range documents {
		want := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), &want.Object)).To(Succeed())
		live := want.DeepCopy()
		if live.GetKind() == "ConfigMap" {
			live.SetNamespace(l.Namespace)
		}
		Expect(isGone(live)(ctx)).To(Succeed())
		if want.GetKind() == "ConfigMap" {
			Expect(live.Object["data"]).To(Equal(want.Object["data"]))
		} else {
			Expect(live.Object["value"]).To(BeEquivalentTo(want.Object["value"]))
		}
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
func (l *faultLab) expectRelease(ctx context.Context, cr *unstructured.Unstructured, phase string, most int, p *faultPlan) {
	GinkgoHelper()
	all, err := statuses(l.Site, cr.GetName())(ctx)
	Expect(err).NotTo(HaveOccurred())
	last := len(all)
	Expect(last).To(And(BeNumerically(">=", slices.Index(phases, phase)+1), BeNumerically("<=", most)), "%v", all)
	for number, status := range all { // Helm also calls an attempt superseded that ended after its predecessor was.
		if number == fmt.Sprint(last) {
			Expect(status).To(Equal("deployed"), "%v", all)
		} else {
			Expect(status).To(BeElementOf("superseded", "failed"), "%v", all)
		}
	}
	l.expectEntry(ctx, cr, all, p)
	Expect(isGone(priorityClass(l.Site, cr.GetName()))(ctx)).To(Succeed())
	owned := HaveField("OwnerReferences", ContainElement(HaveField("UID", cr.GetUID())))
	for _, name := range objects {
		object := &corev1.ConfigMap{}
		Expect(objectNamed(l.Site, cr.GetName()+name, object)(ctx)).To(Succeed())
		Expect(object).To(And(owned, HaveField("Data", Equal(map[string]string{"a": phase}))))
	}
	hook := &corev1.ConfigMap{}
	Expect(objectNamed(l.Site, cr.GetName()+"-pre", hook)(ctx)).To(Succeed())
	Expect(hook).To(owned)
	secret := &corev1.Secret{}
	Expect(objectNamed(l.Site, fmt.Sprintf("sh.helm.release.v1.%s.v%d", cr.GetName(), last), secret)(ctx)).To(Succeed())
	l.expectManifest(ctx, secret)
	Expect(secret).To(And(HaveField("OwnerReferences", BeEmpty()), HaveField("Annotations", HaveKey("operator-sdk/primary-resource"))))
	for _, gone := range []string{"ReleaseFailed", "Irreconcilable"} {
		Expect(l.Condition(cr, gone)(ctx)).To(Equal(harness.Condition{}))
	}
	Expect(l.Condition(cr, "Deployed")(ctx)).To(HaveField("Status", "True"))
}
