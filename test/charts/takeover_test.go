package charts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// dropping are templates that render less once the value legacy is false.
var dropping = map[string]string{
	"config.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  kept: a
  {{- if .Values.legacy }}
  legacy: b
  {{- end }}
`,
	"deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      containers:
      - name: main
        image: none
        env:
        - {name: KEPT, value: a}
        {{- if .Values.legacy }}
        - {name: LEGACY, value: b}
      - name: legacy
        image: none
        {{- end }}
`,
	"service.yaml": `apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {app: {{ .Release.Name }}}
  ports:
  - {name: kept, port: 80}
  {{- if .Values.legacy }}
  - {name: legacy, port: 81}
  {{- end }}
`,
}

// formerManifest renders templates for the CR, as a release of its name has them.
func formerManifest(cr *unstructured.Unstructured, templates ...string) string {
	GinkgoHelper()
	var manifest bytes.Buffer
	for _, text := range templates {
		manifest.WriteString("---\n")
		Expect(template.Must(template.New("").Parse(text)).Execute(&manifest, map[string]any{
			"Release": map[string]any{"Name": cr.GetName()}, "Values": cr.Object["spec"],
		})).To(Succeed())
	}
	return manifest.String()
}

// ownedBy refers to the CR as operator-sdk's Helm operator does.
func ownedBy(cr *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: cr.GetAPIVersion(), Kind: cr.GetKind(), Name: cr.GetName(), UID: cr.GetUID()}}
}

// formerObjects makes objects of the CR's release as operator-sdk's Helm operator does, whose program
// has the name: by creations of the client, owned by the CR.
func formerObjects(ctx context.Context, s *site.Site, cr *unstructured.Unstructured, program, manifest string) {
	GinkgoHelper()
	for _, text := range strings.Split(manifest, "---\n")[1:] {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(text), &object.Object)).To(Succeed())
		object.SetNamespace(s.Namespace)
		object.SetOwnerReferences(ownedBy(cr))
		object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
		object.SetAnnotations(map[string]string{"meta.helm.sh/release-name": cr.GetName(), "meta.helm.sh/release-namespace": s.Namespace})
		Expect(k8s.Create(ctx, object, client.FieldOwner(program))).To(Succeed())
	}
}

// formerRevision writes the record of a revision, without labels of its own.
func formerRevision(ctx context.Context, s *site.Site, cr *unstructured.Unstructured, version int, status common.Status, manifest string) {
	GinkgoHelper()
	secrets, err := clientcorev1.NewForConfig(ground.Cluster.Config)
	Expect(err).NotTo(HaveOccurred())
	Expect(storage.Init(driver.NewSecrets(secrets.Secrets(s.Namespace))).Create(&release.Release{
		Name: cr.GetName(), Namespace: s.Namespace, Version: version, Manifest: manifest, Config: cr.Object["spec"].(map[string]any),
		Info:  &release.Info{FirstDeployed: time.Now(), LastDeployed: time.Now(), Status: status},
		Chart: &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "plain", Version: "1.0.0"}},
	})).To(Succeed())
	record := &corev1.Secret{}
	Expect(objectNamed(s, fmt.Sprintf("sh.helm.release.v1.%s.v%d", cr.GetName(), version), record)(ctx)).To(Succeed())
	record.OwnerReferences = ownedBy(cr)
	Expect(k8s.Update(ctx, record)).To(Succeed())
}

// formerStatus gives the CR the status that operator-sdk's Helm operator leaves after an upgrade that
// failed.
func formerStatus(ctx context.Context, cr *unstructured.Unstructured, manifest string) {
	GinkgoHelper()
	condition := func(kind, reason string) map[string]any {
		return map[string]any{"type": kind, "status": "True", "reason": reason, "message": "as it was", "lastTransitionTime": "2024-01-01T00:00:00Z"}
	}
	initialized := condition("Initialized", "")
	delete(initialized, "reason") // It has none there.
	text, err := json.Marshal(map[string]any{"status": map[string]any{
		"conditions": []any{initialized, condition("Deployed", "UpgradeSuccessful"),
			condition("ReleaseFailed", "UpgradeError"), condition("Irreconcilable", "ReconcileError")},
		"deployedRelease": map[string]any{"name": cr.GetName(), "manifest": manifest},
	}})
	Expect(err).NotTo(HaveOccurred())
	Expect(k8s.Status().Patch(ctx, cr, client.RawPatch("application/merge-patch+json", text))).To(Succeed())
}

var _ = Describe("a release of operator-sdk's Helm operator", Label("long"), func() {
	DescribeTable("loses the fields that an upgrade drops", func(ctx context.Context, program, fields string) {
		s := charted(ctx, dropping, fields)
		cr := harness.Custom(hello, s.Namespace, "former", map[string]any{"legacy": true})
		s.Create(ctx, cr)
		manifest := formerManifest(cr, slices.Collect(maps.Values(dropping))...)
		formerObjects(ctx, s, cr, program, manifest)
		formerRevision(ctx, s, cr, 1, common.StatusDeployed, manifest)
		config, deployment, service := &corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{}
		for _, object := range []client.Object{config, deployment, service} {
			Expect(objectNamed(s, "former", object)(ctx)).To(Succeed())
		}
		address := service.Spec.ClusterIP
		Expect(k8s.Patch(ctx, config, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"added":"c"}}`)), client.FieldOwner("another"))).To(Succeed())
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"legacy":false}}`)))).To(Succeed())

		s.Start(ctx, hello.Kind)
		Eventually(ctx, s.Condition(cr, "Deployed")).Should(HaveField("Reason", "UpgradeSuccessful"))
		for _, object := range []client.Object{config, deployment, service} {
			Expect(objectNamed(s, "former", object)(ctx)).To(Succeed())
			Expect(object.GetOwnerReferences()).To(ConsistOf(HaveField("UID", cr.GetUID())))
		}
		Expect(config.Data).To(Equal(map[string]string{"kept": "a", "added": "c"}), "what somebody else added is left")
		containers := deployment.Spec.Template.Spec.Containers
		Expect(containers).To(HaveLen(1))
		Expect(containers[0].Env).To(ConsistOf(corev1.EnvVar{Name: "KEPT", Value: "a"}))
		Expect(service.Spec.Ports).To(ConsistOf(HaveField("Name", "kept")))
		Expect(service.Spec.ClusterIP).To(Equal(address))

		By("an upgrade that renders it again, and another that drops it")
		for _, legacy := range []string{"true", "false"} {
			Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"legacy":`+legacy+`}}`)))).To(Succeed())
			want := map[string]string{"kept": "a", "added": "c"}
			if legacy == "true" {
				maps.Copy(want, map[string]string{"legacy": "b"})
			}
			Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
				err := objectNamed(s, "former", config)(ctx)
				return config.Data, err
			}).Should(Equal(want))
		}
	},
		Entry("whose program has its usual name", "helm-operator", ""),
		Entry("whose program is called manager", "manager", ""),
		Entry("whose program has a name of its own", "memcached-operator", ""),
		Entry("where the client applies", "helm-operator", "  apply: client\n"),
		Entry("where the client applies, whose program is called manager", "manager", "  apply: client\n"),
	)

	// The chart renders the first now. The second is of the former operator's first revision and of no later
	// one, the third of its second.
	kept, old, early := configMap("kept", "{}", "a: b"), configMap("old", "{}", "a: b"), configMap("early", "{}", "a: b")
	// states are of the revisions that the former operator has left.
	states := []TableEntry{
		Entry("whose upgrades have succeeded", common.StatusSuperseded, common.StatusDeployed),
		Entry("whose last upgrade has failed", common.StatusDeployed, common.StatusFailed),
		Entry("whose last upgrade was killed", common.StatusDeployed, common.StatusPendingUpgrade),
		Entry("whose last rollback was killed", common.StatusDeployed, common.StatusPendingRollback),
		Entry("whose installation has failed", common.StatusFailed),
		Entry("whose installation was killed", common.StatusPendingInstall),
		Entry("that was being removed", common.StatusUninstalling),
	}
	// left makes what the former operator has left: objects, revisions, status and finalizer.
	left := func(ctx context.Context, s *site.Site, states []common.Status, finalizer string) *unstructured.Unstructured {
		GinkgoHelper()
		cr := harness.Custom(hello, s.Namespace, "former", map[string]any{})
		cr.SetFinalizers([]string{finalizer})
		s.Create(ctx, cr)
		manifests := []string{formerManifest(cr, kept, old), formerManifest(cr, kept, early)}
		made := []string{kept}
		if states[len(states)-1] != common.StatusDeployed {
			made = append(made, old) // What goes on has not deleted it yet.
		}
		if len(states) == len(manifests) {
			made = append(made, early)
		}
		formerObjects(ctx, s, cr, "helm-operator", formerManifest(cr, made...))
		for i, status := range states {
			formerRevision(ctx, s, cr, i+1, status, manifests[i])
		}
		formerStatus(ctx, cr, manifests[0])
		return cr
	}

	DescribeTable("goes on", func(ctx context.Context, states ...common.Status) {
		s := charted(ctx, map[string]string{"a.yaml": kept}, "")
		cr := left(ctx, s, states, "helm.sdk.operatorframework.io/uninstall-release")
		made := &corev1.ConfigMap{}
		Expect(objectNamed(s, "former-kept", made)(ctx)).To(Succeed())
		before := made.UID
		s.Start(ctx, hello.Kind)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(harness.ConditionOf(cr, "Initialized")).To(And(HaveField("Status", "True"), HaveField("Reason", Not(BeEmpty()))))
		for _, kind := range []string{"ReleaseFailed", "Irreconcilable"} {
			Expect(harness.ConditionOf(cr, kind)).To(Equal(harness.Condition{}), kind)
		}
		Expect(cr.GetFinalizers()).To(ConsistOf("helm.sdk.operatorframework.io/uninstall-release"))
		Expect(objectNamed(s, "former-kept", made)(ctx)).To(Succeed())
		Expect(made.UID).To(Equal(before), "what the chart renders still is not made anew")
		for _, name := range []string{"former-old", "former-early"} {
			Expect(objectNamed(s, name, made)(ctx)).To(site.BeGone(), name)
		}
		Expect(statuses(s, "former")(ctx)).To(Equal(map[string]string{
			strconv.Itoa(len(states) + 1): "superseded", strconv.Itoa(len(states) + 2): "deployed",
		}))
	}, states)

	It("goes on after somebody has upgraded it by the helm command", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": kept}, "")
		cr := left(ctx, s, []common.Status{common.StatusSuperseded, common.StatusDeployed}, "helm.sdk.operatorframework.io/uninstall-release")
		helm(s, "upgrade", "former", filepath.Join(s.Options.Project, "chart"), "--server-side=false")
		s.Start(ctx, hello.Kind)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(statuses(s, "former")(ctx)).To(Equal(map[string]string{"4": "superseded", "5": "deployed"}))
	})

	DescribeTable("goes with its resource", func(ctx context.Context, states ...common.Status) {
		for _, finalizer := range []string{"helm.sdk.operatorframework.io/uninstall-release", "uninstall-helm-release"} {
			s := charted(ctx, map[string]string{"a.yaml": kept}, "")
			cr := left(ctx, s, states, finalizer)
			Expect(k8s.Delete(ctx, cr)).To(Succeed())
			s.Start(ctx, hello.Kind)
			Eventually(ctx, objectNamed(s, "former", cr)).Should(site.BeGone())
			for _, name := range []string{"former-kept", "former-old", "former-early"} {
				Eventually(ctx, objectNamed(s, name, &corev1.ConfigMap{})).Should(site.BeGone())
			}
			Eventually(ctx, statuses(s, "former")).Should(BeEmpty())
			Expect(s.Manager.Stop()).To(Succeed())
		}
	}, states)
})
