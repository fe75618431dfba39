package charts

import (
	"bytes"
	"context"
	"maps"
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

// formerRelease makes a release of the CR as operator-sdk's Helm operator does, whose program has the
// name: by creations of the client, owned by the CR, and with a record without labels of its own.
func formerRelease(ctx context.Context, s *site.Site, cr *unstructured.Unstructured, templates map[string]string, program string) {
	GinkgoHelper()
	owner := metav1.OwnerReference{APIVersion: cr.GetAPIVersion(), Kind: cr.GetKind(), Name: cr.GetName(), UID: cr.GetUID()}
	var manifest bytes.Buffer
	for name, text := range templates {
		var rendered bytes.Buffer
		Expect(template.Must(template.New(name).Parse(text)).Execute(&rendered, map[string]any{
			"Release": map[string]any{"Name": cr.GetName()}, "Values": cr.Object["spec"],
		})).To(Succeed())
		manifest.WriteString("---\n" + rendered.String())
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(rendered.Bytes(), &object.Object)).To(Succeed())
		object.SetNamespace(s.Namespace)
		object.SetOwnerReferences([]metav1.OwnerReference{owner})
		object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
		object.SetAnnotations(map[string]string{"meta.helm.sh/release-name": cr.GetName(), "meta.helm.sh/release-namespace": s.Namespace})
		Expect(k8s.Create(ctx, object, client.FieldOwner(program))).To(Succeed())
	}
	secrets, err := clientcorev1.NewForConfig(ground.Cluster.Config)
	Expect(err).NotTo(HaveOccurred())
	Expect(storage.Init(driver.NewSecrets(secrets.Secrets(s.Namespace))).Create(&release.Release{
		Name: cr.GetName(), Namespace: s.Namespace, Version: 1, Manifest: manifest.String(), Config: cr.Object["spec"].(map[string]any),
		Info:  &release.Info{FirstDeployed: time.Now(), LastDeployed: time.Now(), Status: common.StatusDeployed},
		Chart: &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "plain", Version: "1.0.0"}},
	})).To(Succeed())
	record := &corev1.Secret{}
	Expect(objectNamed(s, "sh.helm.release.v1."+cr.GetName()+".v1", record)(ctx)).To(Succeed())
	record.OwnerReferences = []metav1.OwnerReference{owner}
	Expect(k8s.Update(ctx, record)).To(Succeed())
}

var _ = Describe("a release of operator-sdk's Helm operator", func() {
	DescribeTable("loses what an upgrade drops", func(ctx context.Context, program string) {
		s := charted(ctx, dropping, "")
		cr := harness.Custom(hello, s.Namespace, "former", map[string]any{"legacy": true})
		s.Create(ctx, cr)
		formerRelease(ctx, s, cr, dropping, program)
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
		Entry("whose program has its usual name", "helm-operator"),
		Entry("whose program is called manager", "manager"),
		Entry("whose program has a name of its own", "memcached-operator"),
	)
})
