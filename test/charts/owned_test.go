package charts

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// unchanged are objects of a chart that nobody changes. The API server stores each of them in other words
// than the chart's, or the cluster gives it more than the chart says.
var unchanged = map[string]string{
	"quantities.yaml": `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Release.Name }}-a", creationTimestamp: null, annotations: {}, labels: null}
spec:
  serviceName: ""
  replicas: 0
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}, creationTimestamp: null, annotations: null}
    spec:
      serviceAccount: default
      nodeSelector: {}
      affinity: {}
      tolerations: []
      imagePullSecrets: []
      securityContext: {}
      initContainers: []
      terminationGracePeriodSeconds: null
      containers:
      - name: a
        image: none
        command: null
        args: []
        env: [{name: A, value: ""}, {name: B}]
        ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]
        resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: "0.10", memory: 1e3}}
        livenessProbe: {httpGet: {port: 80, path: ""}, failureThreshold: null}
        securityContext: {}
        volumeMounts: []
      volumes: [{name: v, emptyDir: {sizeLimit: "1.50Gi"}}, {name: w, configMap: {name: none, items: [], optional: null}}]
  volumeClaimTemplates:
  - metadata: {name: data, annotations: {}, labels: null}
    spec: {accessModes: [ReadWriteOnce], storageClassName: null, resources: {requests: {storage: 1024Mi}}}
status: {replicas: 7}
`,
	"service.yaml": `
apiVersion: v1
kind: Service
metadata: {name: "{{ .Release.Name }}-a"}
spec:
  type: NodePort
  clusterIP: ""
  loadBalancerIP: ""
  loadBalancerSourceRanges: []
  externalIPs: []
  externalName: ""
  sessionAffinity: ""
  ipFamilies: []
  ipFamilyPolicy: null
  ports: [{name: a, port: 80, targetPort: http, nodePort: null}, {name: b, port: 81, targetPort: 0, nodePort: 0}]
  selector: {a: b}
status: {loadBalancer: {}}
`,
	"secret.yaml": `
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Release.Name }}-a"}
type: ""
data: {coded: "YQ==", none: null}
stringData: {a: text, empty: ""}
---
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Release.Name }}-b"}
stringData: null
data: {}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-nulls", finalizers: [], ownerReferences: []}
data: {a: "{{ .Values.a }}", none: null}
binaryData: {}
immutable: null
`,
	"claim.yaml": `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: "{{ .Release.Name }}-a", labels: {a: "{{ .Values.a }}"}}
spec: {accessModes: [ReadWriteOnce], volumeName: "", selector: null, resources: {requests: {storage: 2048Mi}}}
`,
	"jobs.yaml": `
apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Release.Name }}-a"}
spec:
  suspend: true
  backoffLimit: null
  template:
    spec: {restartPolicy: Never, containers: [{name: a, image: none}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: "{{ .Release.Name }}-a"}
spec:
  suspend: true
  schedule: "@daily"
  startingDeadlineSeconds: null
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: none, resources: {}}]}}}}
`,
	"scaled.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}-scaled", labels: {a: "{{ .Values.a }}"}}
spec:
  replicas: 1
  selector: {matchLabels: {c: d}}
  template: {metadata: {labels: {c: d}}, spec: {nodeName: none, containers: [{name: a, image: none}]}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: "{{ .Release.Name }}-scaled"}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: "{{ .Release.Name }}-scaled"}, maxReplicas: 3}
`,
	"autoscaler.yaml": `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: "{{ .Release.Name }}-a"}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: none}
  minReplicas: null
  maxReplicas: 3
  metrics:
  - {type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 80}}}
  - {type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 1000m}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: "{{ .Release.Name }}-a"}
spec: {minAvailable: 50%, selector: {matchLabels: {a: b}}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: "{{ .Release.Name }}-a"}
spec: {hard: {cpu: 10000m, memory: 10240Mi}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: "{{ .Release.Name }}-a"}
spec: {limits: [{type: Container, default: {cpu: 1000m}}]}
`,
	"network.yaml": `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: "{{ .Release.Name }}-a"}
spec: {podSelector: {}, ingress: [{ports: [{port: 80}]}], egress: []}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: "{{ .Release.Name }}-a", annotations: null}
spec:
  tls: []
  rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: "{{ .Release.Name }}-a"}
secrets: []
imagePullSecrets: null
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "{{ .Release.Name }}-a"}
roleRef: {kind: Role, name: none, apiGroup: rbac.authorization.k8s.io}
subjects: [{kind: ServiceAccount, name: a, namespace: "{{ .Release.Namespace }}"}, {kind: User, name: u}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "{{ .Release.Name }}-a"}
rules: []
`,
	"wide.yaml": `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: "{{ .Release.Namespace }}-a", namespace: "{{ .Release.Namespace }}", labels: {a: "{{ .Values.a }}"}}
webhooks:
- name: a.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  namespaceSelector: {}
  clientConfig: {caBundle: "", service: {name: none, namespace: none}}
  rules: [{apiGroups: [none.example.com], apiVersions: ["*"], operations: ["*"], resources: ["*"]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: "{{ .Release.Namespace }}-a"}
webhooks:
- name: a.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {service: {name: none, namespace: none, port: 443}}
- name: b.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {caBundle: Cg==, service: {name: none, namespace: none, path: /a}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{{ .Release.Namespace }}-a", labels: {a: "{{ .Values.a }}"}}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {none: none}}]}
rules: []
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: "things.{{ .Release.Namespace }}.example.com", creationTimestamp: null, labels: {a: "{{ .Values.a }}"}}
spec:
  group: "{{ .Release.Namespace }}.example.com"
  names: {kind: Thing, plural: things}
  scope: Namespaced
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {caBundle: "", service: {name: none, namespace: none}}}}
  preserveUnknownFields: false
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
status: {acceptedNames: {kind: "", plural: ""}, conditions: [], storedVersions: []}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: "v1.api.{{ .Release.Namespace }}.example.com", labels: {a: "{{ .Values.a }}"}}
spec: {group: "api.{{ .Release.Namespace }}.example.com", version: v1, groupPriorityMinimum: 1, versionPriority: 1, caBundle: "", service: {name: none, namespace: none}}
`,
}

// bundle is a CA bundle, in base64.
func bundle() string {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	Expect(err).NotTo(HaveOccurred())
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

// filling is a field that others than the chart write.
type filling struct {
	object *unstructured.Unstructured
	path   string
	value  any
}

func fillings(s *site.Site) []filling {
	GinkgoHelper()
	object := func(group, kind, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
		u.SetName(name)
		return u
	}
	in := func(u *unstructured.Unstructured) *unstructured.Unstructured { u.SetNamespace(s.Namespace); return u }
	const admission = "admissionregistration.k8s.io"
	mutating, ca := object(admission, "MutatingWebhookConfiguration", s.Namespace+"-a"), bundle()
	return []filling{
		{object(admission, "ValidatingWebhookConfiguration", s.Namespace+"-a"), "/webhooks/0/clientConfig/caBundle", ca},
		{mutating, "/webhooks/0/clientConfig/caBundle", ca},
		{mutating, "/webhooks/1/clientConfig/caBundle", ca},
		{object("rbac.authorization.k8s.io", "ClusterRole", s.Namespace+"-a"), "/rules", []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get"}}}},
		{object("apiextensions.k8s.io", "CustomResourceDefinition", "things."+s.Namespace+".example.com"), "/spec/conversion/webhook/clientConfig/caBundle", ca},
		{object("apiregistration.k8s.io", "APIService", "v1.api."+s.Namespace+".example.com"), "/spec/caBundle", ca},
		{in(object("apps", "Deployment", "same-scaled")), "/spec/replicas", int64(3)},
	}
}

// fill writes the field.
func (f filling) fill(ctx context.Context) {
	GinkgoHelper()
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": f.path, "value": f.value}})
	Expect(err).NotTo(HaveOccurred())
	Expect(k8s.Patch(ctx, f.object, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner("somebody"))).To(Succeed())
}

// expect checks that the field still has the value.
func (f filling) expect(ctx context.Context, because string) {
	GinkgoHelper()
	u := f.object.DeepCopy()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(u), u)).To(Succeed())
	var value any = u.Object
	for _, token := range strings.Split(f.path, "/")[1:] {
		if list, ok := value.([]any); ok {
			i, err := strconv.Atoi(token)
			Expect(err).NotTo(HaveOccurred())
			value = list[i]
			continue
		}
		value = value.(map[string]any)[token]
	}
	Expect(value).To(Equal(f.value), "%s of %s %s", f.path, u.GetKind(), because)
}

var _ = Describe("a field that the cluster fills", func() {
	It("does not count as drift, and stays through periods and upgrades", func(ctx context.Context) {
		s := charted(ctx, unchanged, "")
		s.Write(map[string]string{"chart/values.yaml": "a: one\n"})
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "same", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		claim := &corev1.PersistentVolumeClaim{}
		Eventually(ctx, func(ctx context.Context) (string, error) {
			err := objectNamed(s, "same-a", claim)(ctx)
			return claim.Spec.VolumeName, err
		}).ShouldNot(BeEmpty(), "the claim is bound")
		all := fillings(s)
		for _, one := range all {
			one.fill(ctx)
		}
		answered(ctx, s, cr, "filled")
		for _, one := range all {
			one.expect(ctx, "after a comparison")
		}
		text, err := s.Log()
		Expect(err).NotTo(HaveOccurred())
		Expect(text).NotTo(ContainSubstring("Repaired release"))
		Expect(s.Condition(cr, "Compared")(ctx)).To(Equal(harness.Condition{}), "all are compared")

		Expect(k8s.Patch(ctx, cr, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"a":"two"}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(cr, "Deployed")).Should(HaveField("Reason", "UpgradeSuccessful"))
		for _, one := range all {
			one.expect(ctx, "after an upgrade")
			u := one.object.DeepCopy()
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(u), u)).To(Succeed())
			if u.GetKind() != "MutatingWebhookConfiguration" { // Of which the chart changes nothing.
				Expect(u.GetLabels()).To(HaveKeyWithValue("a", "two"))
			}
		}
		Expect(objectNamed(s, "same-a", claim)(ctx)).To(Succeed())
		Expect(claim.Labels).To(HaveKeyWithValue("a", "two"))
	})
})
