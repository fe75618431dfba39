package charts

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// tank is a kind with a schema that charts make objects of.
var tank = schema.GroupVersionKind{Group: "parts.example.com", Version: "v1", Kind: "Tank"}

const tankSchema = `
type: object
properties:
  spec:
    type: object
    properties:
      size: {type: integer}
      valves: {type: array, items: {type: string}}
      labels: {type: object, additionalProperties: {type: string}}
      mode: {type: string}
      limit: {type: string, nullable: true}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
      pipes: {type: array, items: {type: object, properties: {name: {type: string}, count: {type: integer}, bends: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}
`

func tanks() *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	definition := harness.Definition(tank.GroupKind())
	properties := &apiextensionsv1.JSONSchemaProps{}
	Expect(yaml.Unmarshal([]byte(tankSchema), properties)).To(Succeed())
	definition.Spec.Versions[0].Name = tank.Version
	definition.Spec.Versions[0].Schema.OpenAPIV3Schema = properties
	definition.Spec.Versions[0].Subresources = nil
	return definition
}

// tankNamed reads the spec of a tank.
func tankNamed(s *site.Site, name string, found *unstructured.Unstructured) func(context.Context) (map[string]any, error) {
	return func(ctx context.Context) (map[string]any, error) {
		found.SetGroupVersionKind(tank)
		err := objectNamed(s, name, found)(ctx)
		spec, _, _ := unstructured.NestedMap(found.Object, "spec")
		return spec, err
	}
}

func managers(object client.Object) (names []string) {
	for _, entry := range object.GetManagedFields() {
		names = append(names, entry.Manager+"/"+string(entry.Operation))
	}
	return names
}

// tankText is a custom resource with nulls where a value is empty.
const tankText = `apiVersion: parts.example.com/v1
kind: Tank
metadata: {name: "{{ .Release.Name }}"}
spec:
  size: {{ .Values.size }}
  valves:
  {{- range .Values.valves }}
  - {{ . }}
  {{- end }}
  labels:
  {{- with .Values.labels }}
  {{- toYaml . | nindent 4 }}
  {{- end }}
  mode: {{ .Values.mode }}
  {{- with .Values.added }}
  free: {added: {{ . }}}
  {{- end }}
`

var _ = Describe("objects that server-side apply refuses for formal reasons", func() {
	It("is a null in a custom resource, which is patched until it can be applied, and rests", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"tank.yaml": tankText, "a.yaml": configMap("a", "{}", "a: {{ .Values.size | quote }}")}, "")
		s.Write(map[string]string{"chart/values.yaml": "size: 1\nvalves: []\nlabels: {}\nmode: \"\"\n"})
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "formal", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		found := &unstructured.Unstructured{}
		spec := tankNamed(s, "formal", found)
		Expect(spec(ctx)).To(Equal(map[string]any{"size": int64(1)}))
		Eventually(ctx, notes(cr, "AppliedByPatch")).Should(ConsistOf(And(ContainSubstring("Tank "+s.Namespace+"/formal"), ContainSubstring("spec."))))

		By("repairing it")
		s.Watched(ctx, "tanks.parts.example.com")
		Expect(k8s.Patch(ctx, found, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":5}}`)), client.FieldOwner("somebody"))).To(Succeed())
		Eventually(ctx, spec).Should(HaveKeyWithValue("size", int64(1)))
		answered(ctx, s, cr, "at rest")
		version := found.GetResourceVersion()
		answered(ctx, s, cr, "once more")
		Expect(spec(ctx)).To(HaveKeyWithValue("size", int64(1)))
		Expect(found.GetResourceVersion()).To(Equal(version))
		Expect(statuses(s, "formal")(ctx)).To(Equal(map[string]string{"1": "deployed"}))

		By("a field that comes while it is patched, beside a value")
		change(ctx, cr, `{"spec":{"mode":"fast","added":"once"}}`)
		succeeded(ctx, s, cr)
		Expect(spec(ctx)).To(Equal(map[string]any{"size": int64(1), "mode": "fast", "free": map[string]any{"added": "once"}}))

		By("no null any more")
		change(ctx, cr, `{"spec":{"valves":["a"],"labels":{"a":"b"}}}`)
		succeeded(ctx, s, cr)
		Expect(spec(ctx)).To(Equal(map[string]any{"size": int64(1), "mode": "fast", "valves": []any{"a"}, "labels": map[string]any{"a": "b"}, "free": map[string]any{"added": "once"}}))
		Expect(managers(found)).To(And(ContainElement("helm/Apply"), Not(ContainElement(HavePrefix("helm-patch/")))))

		By("an upgrade that drops additions during its patch")
		change(ctx, cr, `{"spec":{"added":null}}`)
		succeeded(ctx, s, cr)
		Expect(spec(ctx)).NotTo(HaveKey("free"))

		By("an upgrade that empties values")
		change(ctx, cr, `{"spec":{"valves":[],"labels":null,"mode":"","size":2}}`)
		succeeded(ctx, s, cr)
		Expect(spec(ctx)).To(Equal(map[string]any{"size": int64(2)}))
		Expect(s.Condition(cr, "ReleaseFailed")(ctx)).To(Equal(harness.Condition{}))
	})

	It("keeps a null that the kind allows as a value", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"tank.yaml": "apiVersion: parts.example.com/v1\nkind: Tank\nmetadata: {name: '{{ .Release.Name }}'}\nspec: {size: 1, limit: null, free: {a: null, b: {}}}\n"}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "allowed", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		found := &unstructured.Unstructured{}
		Expect(tankNamed(s, "allowed", found)(ctx)).To(Equal(map[string]any{"size": int64(1), "limit": nil, "free": map[string]any{"a": nil, "b": map[string]any{}}}))
		Expect(managers(found)).To(ConsistOf("helm/Apply"))
	})

	It("is a field that the kind does not have, of which the API server's warning tells", func(ctx context.Context) {
		text := strings.Replace(served["deployment.yaml"], "      containers:", "      securityContext: {runAsNonRoot: true, readOnlyRootFilesystem: true}\n      containers:", 1)
		s := charted(ctx, map[string]string{"deployment.yaml": strings.Replace(text, "one:1", "one:{{ .Values.tag }}", 1)}, "")
		s.Write(map[string]string{"chart/values.yaml": "tag: 1\n"})
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "unknown", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Eventually(ctx, notes(cr, "AppliedByPatch")).Should(ConsistOf(And(ContainSubstring("readOnlyRootFilesystem"), ContainSubstring("The API server warns: unknown field"))))
		change(ctx, cr, `{"spec":{"tag":"2"}}`)
		succeeded(ctx, s, cr)
		deployment := &appsv1.Deployment{}
		Expect(objectNamed(s, "unknown-web", deployment)(ctx)).To(Succeed())
		Expect(deployment.Spec.Template.Spec).To(And(HaveField("SecurityContext.RunAsNonRoot", HaveValue(BeTrue())), HaveField("Containers", ConsistOf(HaveField("Image", "one:2")))))
		generation := deployment.Generation
		answered(ctx, s, cr, "at rest")
		Expect(objectNamed(s, "unknown-web", deployment)(ctx)).To(Succeed())
		Expect(deployment.Generation).To(Equal(generation))
		Expect(s.Condition(cr, "Compared")(ctx)).To(Equal(harness.Condition{}))
	})

	It("has an element twice: the first change after the installation is repaired", func(ctx context.Context) {
		text := strings.Replace(served["deployment.yaml"], "      containers:", "      hostAliases: [{ip: 127.0.0.1, hostnames: [a]}, {ip: 127.0.0.1, hostnames: [b]}]\n      containers:", 1)
		s := charted(ctx, map[string]string{"deployment.yaml": text}, "  reconcilePeriod: 1h\n").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "twice", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Eventually(ctx, notes(cr, "AppliedByPatch")).Should(HaveLen(1))
		s.Watched(ctx, "deployments.apps")
		deployment := &appsv1.Deployment{}
		read := objectNamed(s, "twice-web", deployment)
		Expect(read(ctx)).To(Succeed())
		Expect(k8s.Patch(ctx, deployment, client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"one","image":"one:theirs"}]}}}}`)), client.FieldOwner("somebody"))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) ([]corev1.Container, error) {
			err := read(ctx)
			return deployment.Spec.Template.Spec.Containers, err
		}).Should(ConsistOf(HaveField("Image", "one:1")))
	})
})

var _ = DescribeTable("directives of a strategic merge patch are not fields", func(ctx context.Context, apply string) {
	text := strings.Replace(united, "strategy: {type", "strategy: {$patch: replace, $retainKeys: [type], type", 1)
	text = strings.Replace(text, "      volumes:", "      $setElementOrder/containers: [{name: main}]\n      volumes:", 1)
	s := charted(ctx, map[string]string{"deployment.yaml": text, "config.yaml": configMap("a", "{}", "a: b")}, apply)
	s.Write(map[string]string{"chart/values.yaml": "other: false\nstrategy: RollingUpdate\n"})
	s.Start(ctx, hello.Kind)
	cr := harness.Custom(hello, s.Namespace, "directed", nil)
	s.Create(ctx, cr)
	Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
	deployment := &appsv1.Deployment{}
	for _, strategy := range []string{"Recreate", "RollingUpdate", "Recreate"} {
		change(ctx, cr, `{"spec":{"strategy":"`+strategy+`"}}`)
		succeeded(ctx, s, cr)
		answered(ctx, s, cr, "compared for "+strategy)
		Expect(objectNamed(s, "directed", deployment)(ctx)).To(Succeed())
		Expect(deployment.Spec.Strategy.Type).To(BeEquivalentTo(strategy))
		Expect(deployment.Generation).To(BeNumerically("<=", 4))
	}
	change(ctx, cr, `{"spec":{"other":true}}`)
	succeeded(ctx, s, cr)
	Expect(objectNamed(s, "directed", deployment)(ctx)).To(Succeed())
	Expect(deployment.Spec.Strategy.Type).To(BeEquivalentTo("Recreate"), "an upgrade of other fields leaves it")
	Expect(notes(cr, "Repaired")(ctx)).To(BeEmpty())
	Expect(notes(cr, "AppliedByPatch")(ctx)).To(BeEmpty())
},
	Entry("by the server", ""),
	Entry("by the client", "  apply: client\n"),
)

// united is a Deployment with a member of each union, or with another one.
const united = `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  selector: {matchLabels: {a: b}}
  strategy: {type: {{ .Values.strategy }}}
  template:
    metadata: {labels: {a: b}}
    spec:
      volumes:
      - name: v
        {{- if .Values.other }}
        configMap: {name: a}
        {{- else }}
        emptyDir: {}
        {{- end }}
      containers:
      - name: main
        image: none
        env:
        {{- if .Values.other }}
        - {name: COLOR, value: red}
        {{- else }}
        - {name: COLOR, valueFrom: {configMapKeyRef: {name: settings, key: color}}}
        {{- end }}
        livenessProbe: {{ if .Values.other }}{exec: {command: ["true"]}}{{ else }}{httpGet: {path: /, port: 80}}{{ end }}
        lifecycle: {preStop: {{ if .Values.other }}{sleep: {seconds: 1}}{{ else }}{exec: {command: ["true"]}}{{ end }}}
`

var _ = DescribeTable("members of unions, of which another client sets the other one, go in every direction", func(ctx context.Context, apply string) {
	s := charted(ctx, map[string]string{"deployment.yaml": united}, apply)
	s.Write(map[string]string{"chart/values.yaml": "other: false\nstrategy: Recreate\n"})
	s.Start(ctx, hello.Kind)
	cr := harness.Custom(hello, s.Namespace, "united", nil)
	s.Create(ctx, cr)
	Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
	deployment := &appsv1.Deployment{}
	// set sets the other member of each union.
	set := func(ctx context.Context, strategy, env, probe, lifecycle, volume string) {
		GinkgoHelper()
		Expect(objectNamed(s, "united", deployment)(ctx)).To(Succeed())
		patch := `{"spec":{"strategy":` + strategy + `,"template":{"spec":{"volumes":[{"name":"v",` + volume + `}],"containers":[{"name":"main","env":[{"name":"COLOR",` + env + `}],"livenessProbe":` + probe + `,"lifecycle":{"preStop":` + lifecycle + `}}]}}}}`
		Expect(k8s.Patch(ctx, deployment, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner("somebody"))).To(Succeed())
	}
	first := func() {
		GinkgoHelper()
		set(ctx, `{"type":"RollingUpdate"}`, `"value":"blue","valueFrom":null`, `{"exec":{"command":["false"]},"httpGet":null}`, `{"sleep":{"seconds":2},"exec":null}`, `"emptyDir":null,"configMap":{"name":"b"}`)
	}
	spec := func(ctx context.Context) (appsv1.DeploymentSpec, error) {
		err := objectNamed(s, "united", deployment)(ctx)
		return deployment.Spec, err
	}
	asFirst := And(HaveField("Strategy.Type", BeEquivalentTo("Recreate")), HaveField("Template.Spec.Volumes", ConsistOf(And(HaveField("EmptyDir", Not(BeNil())), HaveField("ConfigMap", BeNil())))),
		HaveField("Template.Spec.Containers", ConsistOf(And(HaveField("Env", ConsistOf(And(HaveField("Value", ""), HaveField("ValueFrom.ConfigMapKeyRef.Key", "color")))),
			HaveField("LivenessProbe.HTTPGet", Not(BeNil())), HaveField("LivenessProbe.Exec", BeNil()), HaveField("Lifecycle.PreStop.Exec", Not(BeNil())), HaveField("Lifecycle.PreStop.Sleep", BeNil())))))
	asOther := And(HaveField("Strategy.Type", BeEquivalentTo("RollingUpdate")), HaveField("Template.Spec.Volumes", ConsistOf(And(HaveField("EmptyDir", BeNil()), HaveField("ConfigMap.Name", "a")))),
		HaveField("Template.Spec.Containers", ConsistOf(And(HaveField("Env", ConsistOf(And(HaveField("Value", "red"), HaveField("ValueFrom", BeNil())))),
			HaveField("LivenessProbe.HTTPGet", BeNil()), HaveField("LivenessProbe.Exec.Command", ConsistOf("true")), HaveField("Lifecycle.PreStop.Exec", BeNil()), HaveField("Lifecycle.PreStop.Sleep.Seconds", BeEquivalentTo(1))))))

	By("repairing them")
	s.Watched(ctx, "deployments.apps")
	first()
	Eventually(ctx, spec).Should(asFirst)
	answered(ctx, s, cr, "repaired")
	Expect(s.Condition(cr, "Compared")(ctx)).To(Equal(harness.Condition{}))

	By("an upgrade to the other members")
	change(ctx, cr, `{"spec":{"other":true,"strategy":"RollingUpdate"}}`)
	succeeded(ctx, s, cr)
	Expect(spec(ctx)).To(asOther)

	By("repairing these")
	set(ctx, `{"type":"Recreate","rollingUpdate":null}`, `"value":null,"valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}`, `{"httpGet":{"path":"/x","port":1},"exec":null}`, `{"exec":{"command":["x"]},"sleep":null}`, `"configMap":null,"emptyDir":{}`)
	Eventually(ctx, spec).Should(asOther)

	By("an upgrade back, with fields that another client changes at the same time")
	Expect(s.Manager.Stop()).To(Succeed())
	set(ctx, `{"type":"Recreate","rollingUpdate":null}`, `"value":null,"valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}`, `{"tcpSocket":{"port":1},"exec":null}`, `{"exec":null,"sleep":null,"httpGet":{"port":80}}`, `"configMap":null,"secret":{"secretName":"x"}`)
	change(ctx, cr, `{"spec":{"other":false,"strategy":"Recreate"}}`)
	s.Start(ctx, hello.Kind)
	succeeded(ctx, s, cr)
	Expect(spec(ctx)).To(asFirst)
	Expect(s.Condition(cr, "ReleaseFailed")(ctx)).To(Equal(harness.Condition{}))
},
	Entry("by the server", ""),
	Entry("by the client", "  apply: client\n"),
)

var _ = DescribeTable("a key that leaves stringData leaves the Secret", func(ctx context.Context, apply string) {
	s := charted(ctx, map[string]string{"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {binary: AAA=}\nstringData:\n  user: ann\n  {{- with .Values.token }}\n  token: {{ . }}\n  {{- end }}\n"}, apply).Start(ctx, hello.Kind)
	cr := harness.Custom(hello, s.Namespace, "keys", map[string]any{"token": "first"})
	s.Create(ctx, cr)
	Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
	secret := &corev1.Secret{}
	Expect(objectNamed(s, "keys", secret)(ctx)).To(Succeed())
	Expect(secret.Data).To(And(HaveLen(3), HaveKeyWithValue("token", []byte("first"))))
	Expect(k8s.Patch(ctx, secret, client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"theirs":"x"}}`)), client.FieldOwner("somebody"))).To(Succeed())
	change(ctx, cr, `{"spec":{"token":null}}`)
	succeeded(ctx, s, cr)
	Expect(objectNamed(s, "keys", secret)(ctx)).To(Succeed())
	Expect(secret.Data).To(And(HaveLen(3), HaveKeyWithValue("user", []byte("ann")), HaveKey("binary"), HaveKey("theirs")))
},
	Entry("by the server", ""),
	Entry("by the client", "  apply: client\n"),
)

var _ = Describe("autoscaling that an upgrade switches on", func() {
	It("leaves the replicas that there are", func(ctx context.Context) {
		deployment := strings.Replace(served["deployment.yaml"], "spec:\n", "spec:\n  {{- if not .Values.autoscaling }}\n  replicas: {{ .Values.replicas }}\n  {{- end }}\n", 1)
		s := charted(ctx, map[string]string{
			"deployment.yaml": deployment,
			"hpa.yaml":        "{{- if .Values.autoscaling }}\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: '{{ .Release.Name }}-web'}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: '{{ .Release.Name }}-web'}, minReplicas: 3, maxReplicas: 10}\n{{- end }}\n",
		}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "scaled", map[string]any{"replicas": int64(5), "autoscaling": false})
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		s.Watched(ctx, "deployments.apps")
		change(ctx, cr, `{"spec":{"autoscaling":true}}`)
		succeeded(ctx, s, cr)
		found := &appsv1.Deployment{}
		Expect(objectNamed(s, "scaled-web", &autoscalingv2.HorizontalPodAutoscaler{})(ctx)).To(Succeed())
		Expect(objectNamed(s, "scaled-web", found)(ctx)).To(Succeed())
		Expect(found.Spec.Replicas).To(HaveValue(BeEquivalentTo(5)))
		Expect(found.Generation).To(BeEquivalentTo(1))
		answered(ctx, s, cr, "at rest")
		Expect(objectNamed(s, "scaled-web", found)(ctx)).To(Succeed())
		Expect(found.Spec.Replicas).To(HaveValue(BeEquivalentTo(5)))
	})
})
