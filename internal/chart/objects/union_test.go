package objects

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// jsonFields returns the fields of a struct by their names in JSON.
func jsonFields(of reflect.Type) map[string]reflect.StructField {
	all := map[string]reflect.StructField{}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" { // It is inlined.
			maps.Copy(all, jsonFields(field.Type))
			continue
		}
		all[name] = field
	}
	return all
}

// typeAt returns the struct to which a path leads.
func typeAt(of reflect.Type, path string) reflect.Type {
	for name := range strings.SplitSeq(path, ".") {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if name == "*" {
			of = of.Elem()
			continue
		}
		field, has := jsonFields(of)[name]
		if !has {
			return nil
		}
		of = field.Type
	}
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of
}

// The members are a list by hand: all of them are fields of the API types, and in types that are unions no field is missing.
func TestTheUnionsAreThoseOfTheAPITypes(t *testing.T) {
	types := map[schema.GroupKind]any{
		{Group: "apps", Kind: "Deployment"}: appsv1.Deployment{}, {Group: "apps", Kind: "DaemonSet"}: appsv1.DaemonSet{}, {Group: "apps", Kind: "StatefulSet"}: appsv1.StatefulSet{},
		{Group: "apps", Kind: "ReplicaSet"}: appsv1.ReplicaSet{}, {Group: "batch", Kind: "Job"}: batchv1.Job{}, {Group: "batch", Kind: "CronJob"}: batchv1.CronJob{},
		{Kind: "ReplicationController"}: corev1.ReplicationController{}, {Kind: "Pod"}: corev1.Pod{}, {Kind: "PodTemplate"}: corev1.PodTemplate{}, {Kind: "Service"}: corev1.Service{},
		{Group: "networking.k8s.io", Kind: "Ingress"}: networkingv1.Ingress{}, {Group: "policy", Kind: "PodDisruptionBudget"}: policyv1.PodDisruptionBudget{},
	}
	for kind := range podsIn {
		if types[kind] == nil {
			t.Errorf("the test does not know %s", kind)
		}
	}
	whole := map[reflect.Type][]string{ // Fields of unions that are no members.
		reflect.TypeFor[corev1.EnvVarSource](): nil, reflect.TypeFor[corev1.LifecycleHandler](): {"stopSignal"},
		reflect.TypeFor[corev1.Volume](): {"name"},
		reflect.TypeFor[corev1.Probe]():  {"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold", "terminationGracePeriodSeconds"},
		reflect.TypeFor[corev1.EnvVar](): {"name"}, reflect.TypeFor[networkingv1.IngressBackend](): nil, reflect.TypeFor[networkingv1.ServiceBackendPort](): nil,
	}
	for kind, object := range types {
		for _, one := range unionsOf(kind) {
			of := typeAt(reflect.TypeOf(object), one.at)
			if of == nil {
				t.Errorf("%s has no %s", kind, one.at)
				continue
			}
			fields := jsonFields(of)
			for _, name := range slices.Concat(one.members, []string{one.by}) {
				if _, has := fields[name]; name != "" && !has {
					t.Errorf("%s: %s has no %s", kind, one.at, name)
				}
			}
			for name := range one.allowed {
				if _, has := fields[name]; !has {
					t.Errorf("%s: %s has no %s", kind, one.at, name)
				}
			}
			others, isWhole := whole[of]
			for name := range fields {
				if isWhole && !slices.Contains(one.members, name) && !slices.Contains(others, name) {
					t.Errorf("%s: %s has %s, which is no member", kind, one.at, name)
				}
			}
		}
	}
}

func TestRivals(t *testing.T) {
	pod := func(container, volumes string) string {
		return "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: a, " + container + "}], volumes: [" + volumes + "]}}}}"
	}
	service := func(spec string) string { return "{apiVersion: v1, kind: Service, spec: " + spec + "}" }
	for why, test := range map[string]struct {
		desired, live string
		want          []string
	}{
		"a value beside the chart's reference":    {pod("env: [{name: X, valueFrom: {fieldRef: {}}}]", ""), pod("env: [{name: X, value: a, valueFrom: {fieldRef: {}}}]", ""), []string{"/spec/template/spec/containers/name=a/env/name=X/value"}},
		"a reference beside the chart's value":    {pod("env: [{name: X, value: a}]", ""), pod("env: [{name: X, valueFrom: {fieldRef: {}}}]", ""), []string{"/spec/template/spec/containers/name=a/env/name=X/valueFrom"}},
		"not beside an empty value":               {pod("env: [{name: X, value: ''}]", ""), pod("env: [{name: X, valueFrom: {fieldRef: {}}}]", ""), nil},
		"another reference":                       {pod("env: [{name: X, valueFrom: {fieldRef: {}}}]", ""), pod("env: [{name: X, valueFrom: {secretKeyRef: {}}}]", ""), []string{"/spec/template/spec/containers/name=a/env/name=X/valueFrom/secretKeyRef"}},
		"not a variable of others":                {pod("env: [{name: X, value: a}]", ""), pod("env: [{name: X, value: a}, {name: Y, valueFrom: {}}]", ""), nil},
		"a source of a volume":                    {pod("b: c", "{name: v, configMap: {}}"), pod("b: c", "{name: v, emptyDir: {}}"), []string{"/spec/template/spec/volumes/name=v/emptyDir"}},
		"what a strategy does not allow":          {"{apiVersion: apps/v1, kind: Deployment, spec: {strategy: {type: Recreate}}}", "{apiVersion: apps/v1, kind: Deployment, spec: {strategy: {type: RollingUpdate, rollingUpdate: {}}}}", []string{"/spec/strategy/rollingUpdate"}},
		"a strategy that the chart's field needs": {"{apiVersion: apps/v1, kind: Deployment, spec: {strategy: {rollingUpdate: {}}}}", "{apiVersion: apps/v1, kind: Deployment, spec: {strategy: {type: Recreate}}}", []string{"/spec/strategy/type"}},
		"what a type does not allow":              {service("{type: ClusterIP}"), service("{type: LoadBalancer, loadBalancerSourceRanges: [a], externalTrafficPolicy: Local}"), []string{"/spec/externalTrafficPolicy", "/spec/loadBalancerSourceRanges"}},
		"not what it allows":                      {service("{type: LoadBalancer}"), service("{type: LoadBalancer, loadBalancerSourceRanges: [a]}"), nil},
		"a key of a ConfigMap in the other part":  {"{apiVersion: v1, kind: ConfigMap, data: {a: b}}", "{apiVersion: v1, kind: ConfigMap, binaryData: {a: YQ==, c: YQ==}}", []string{"/binaryData/a"}},
		"the other bound of a budget":             {"{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 1}}", "{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {maxUnavailable: 1}}", []string{"/spec/maxUnavailable"}},
		"nothing of a kind of others":             {"{apiVersion: x/v1, kind: Deployment, spec: {strategy: {type: Recreate}}}", "{apiVersion: x/v1, kind: Deployment, spec: {strategy: {rollingUpdate: {}}}}", nil},
	} {
		t.Run(why, func(t *testing.T) {
			live := readOne(t, test.live)
			var got []string
			for _, path := range rivals(readOne(t, test.desired), live) {
				got = append(got, find(live.Object, path).pointer.String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}
