package objects

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// union is a place in objects where fields exclude each other.
type union struct {
	// at is the path to the object that has the fields; * is each entry of a list, by its name.
	at string
	// members are the fields of which only one may be set.
	members []string
	// by is a field whose value says which of the fields in allowed may be set. Each of these has the values
	// that allow it.
	by      string
	allowed map[string][]string
}

// The unions of the API types. A test compares the members with the types.
var (
	handlers   = []string{"exec", "httpGet", "tcpSocket", "grpc"}                                          //nolint:gochecknoglobals // A table.
	lifecycles = []string{"exec", "httpGet", "tcpSocket", "sleep"}                                         //nolint:gochecknoglobals // A table.
	valuesFrom = []string{"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"} //nolint:gochecknoglobals // A table.
	volumes    = []string{                                                                                 //nolint:gochecknoglobals // A table.
		"hostPath", "emptyDir", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "secret", "nfs", "iscsi", "glusterfs", "persistentVolumeClaim", "rbd",
		"flexVolume", "cinder", "cephfs", "flocker", "downwardAPI", "fc", "azureFile", "configMap", "vsphereVolume", "quobyte", "azureDisk",
		"photonPersistentDisk", "projected", "portworxVolume", "scaleIO", "storageos", "csi", "ephemeral", "image",
	}

	localOnly   = map[string][]string{"localhostProfile": {"Localhost"}}  //nolint:gochecknoglobals // A table.
	rollingOnly = map[string][]string{"rollingUpdate": {"RollingUpdate"}} //nolint:gochecknoglobals // A table.

	ofContainers = []union{ //nolint:gochecknoglobals // A table.
		{at: "env.*", members: []string{"value", "valueFrom"}},
		{at: "env.*.valueFrom", members: valuesFrom},
		{at: "livenessProbe", members: handlers}, {at: "readinessProbe", members: handlers}, {at: "startupProbe", members: handlers},
		{at: "lifecycle.postStart", members: lifecycles}, {at: "lifecycle.preStop", members: lifecycles},
		{at: "securityContext.seccompProfile", by: "type", allowed: localOnly}, {at: "securityContext.appArmorProfile", by: "type", allowed: localOnly},
	}
	ofPods = []union{ //nolint:gochecknoglobals // A table.
		{at: "volumes.*", members: volumes},
		{at: "securityContext.seccompProfile", by: "type", allowed: localOnly}, {at: "securityContext.appArmorProfile", by: "type", allowed: localOnly},
	}
	ofKinds = map[schema.GroupKind][]union{ //nolint:gochecknoglobals // A table.
		{Group: "apps", Kind: "Deployment"}:  {{at: "spec.strategy", by: "type", allowed: rollingOnly}},
		{Group: "apps", Kind: "DaemonSet"}:   {{at: "spec.updateStrategy", by: "type", allowed: rollingOnly}},
		{Group: "apps", Kind: "StatefulSet"}: {{at: "spec.updateStrategy", by: "type", allowed: rollingOnly}},
		{Group: "networking.k8s.io", Kind: "Ingress"}: {
			{at: "spec.defaultBackend", members: []string{"service", "resource"}}, {at: "spec.defaultBackend.service.port", members: []string{"name", "number"}},
		},
		{Group: "policy", Kind: "PodDisruptionBudget"}: {{at: "spec", members: []string{"minAvailable", "maxUnavailable"}}},
		{Kind: "Service"}: {
			{at: "spec", by: "sessionAffinity", allowed: map[string][]string{"sessionAffinityConfig": {"ClientIP"}}},
			{at: "spec", by: "type", allowed: map[string][]string{
				"externalName": {"ExternalName"}, "externalTrafficPolicy": {"NodePort", "LoadBalancer"},
				"loadBalancerSourceRanges": {"LoadBalancer"}, "loadBalancerClass": {"LoadBalancer"}, "allocateLoadBalancerNodePorts": {"LoadBalancer"},
			}},
		},
	}
	// podsIn has where the kinds have a pod's spec.
	podsIn = map[schema.GroupKind]string{ //nolint:gochecknoglobals // A table.
		{Group: "apps", Kind: "Deployment"}: "spec.template.spec", {Group: "apps", Kind: "DaemonSet"}: "spec.template.spec",
		{Group: "apps", Kind: "StatefulSet"}: "spec.template.spec", {Group: "apps", Kind: "ReplicaSet"}: "spec.template.spec",
		{Group: "batch", Kind: "Job"}: "spec.template.spec", {Group: "batch", Kind: "CronJob"}: "spec.jobTemplate.spec.template.spec",
		{Kind: "ReplicationController"}: "spec.template.spec", {Kind: "Pod"}: "spec", {Kind: "PodTemplate"}: "template.spec",
	}
)

// unionsOf returns the unions of a kind.
func unionsOf(kind schema.GroupKind) []union {
	all := slices.Clone(ofKinds[kind])
	pod, has := podsIn[kind]
	if !has {
		return all
	}
	below := func(at string, unions []union) {
		for _, one := range unions {
			one.at = at + "." + one.at
			all = append(all, one)
		}
	}
	below(pod, ofPods)
	for _, containers := range []string{"containers", "initContainers"} {
		below(pod+"."+containers+".*", ofContainers)
	}
	return all
}

// rivals returns the fields of the live object, of any manager, that the chart does not have and that
// exclude fields of the chart. The API server refuses both together, and names either.
func rivals(desired, live *unstructured.Unstructured) (found []fieldpath.Path) {
	kind := desired.GroupVersionKind().GroupKind()
	for _, one := range unionsOf(kind) {
		eachAt(desired.Object, live.Object, strings.Split(one.at, "."), nil, func(desired, there map[string]any, at fieldpath.Path) {
			for _, name := range one.excluded(desired, there) {
				found = append(found, append(at.Copy(), fieldpath.FieldNameElement(name)))
			}
		})
	}
	if kind == (schema.GroupKind{Kind: "ConfigMap"}) {
		for _, names := range [][2]string{{"data", "binaryData"}, {"binaryData", "data"}} {
			desired, _ := desired.Object[names[0]].(map[string]any)
			there, _ := live.Object[names[1]].(map[string]any)
			for key := range desired {
				if _, twice := there[key]; twice {
					found = append(found, fieldpath.MakePathOrDie(names[1], key))
				}
			}
		}
	}
	slices.SortFunc(found, fieldpath.Path.Compare)
	return found
}

// excluded returns the fields that exclude those of the chart.
func (u union) excluded(desired, there map[string]any) (names []string) {
	add := func(name string) {
		_, isThere := there[name]
		if _, isDesired := desired[name]; isThere && !isDesired {
			names = append(names, name)
		}
	}
	chosen := func(name string) bool { return desired[name] != nil && desired[name] != "" }
	if slices.ContainsFunc(u.members, chosen) {
		for _, name := range u.members {
			add(name)
		}
	}
	for name, values := range u.allowed {
		now, _ := desired[u.by].(string)
		isNow, _ := there[u.by].(string)
		switch {
		case now != "" && !slices.Contains(values, now):
			add(name)
		case now == "" && chosen(name) && !slices.Contains(values, isNow):
			add(u.by)
		}
	}
	return names
}

// eachAt calls visit with the objects at the path in both.
func eachAt(desired, there any, at []string, path fieldpath.Path, visit func(desired, there map[string]any, at fieldpath.Path)) {
	if len(at) > 0 && at[0] == "*" {
		texts, _ := desired.([]any)
		lives, _ := there.([]any)
		for _, text := range texts {
			fields, _ := text.(map[string]any)
			name, _ := fields["name"].(string)
			element := fieldpath.KeyElementByFields("name", name)
			if i := entryOf(lives, element); i >= 0 && name != "" {
				eachAt(text, lives[i], at[1:], append(path.Copy(), element), visit)
			}
		}
		return
	}
	text, isText := desired.(map[string]any)
	live, isLive := there.(map[string]any)
	switch {
	case !isText || !isLive:
	case len(at) == 0:
		visit(text, live, path)
	default:
		eachAt(text[at[0]], live[at[0]], at[1:], append(path.Copy(), fieldpath.FieldNameElement(at[0])), visit)
	}
}
