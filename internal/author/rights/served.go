package rights

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	kinds "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	words "github.com/ensign-operator/ensign/internal/author/kinds"
	"github.com/ensign-operator/ensign/internal/author/schema"
)

// served is a kind as an API server serves it.
type served struct {
	group, kind, resource string
	clusterScoped         bool
}

// find returns the kind that a client means by an API version and the name of a kind, its plural,
// its singular or its short name. The client of kubernetes.core uses the version v1 where a task
// has no api_version. It takes a version without a group for that of the core, or else for that of
// any group that serves such a kind in it. known is false where only a cluster can tell.
func find(apiVersion, name string, crds []schema.CRD) (found served, known bool) {
	gv, err := kinds.ParseGroupVersion(apiVersion)
	if err != nil || name == "" {
		return served{}, false
	}
	candidates := search(gv, name, crds)
	if base, isList := strings.CutSuffix(name, "List"); isList && len(candidates) == 0 {
		candidates = search(gv, base, crds) // The client has a list of each kind.
	}
	inCore := slices.IndexFunc(candidates, func(s served) bool { return s.group == "" })
	switch {
	case inCore >= 0:
		return candidates[inCore], true
	case len(candidates) == 1:
		return candidates[0], true
	case gv.Group != "":
		return guess(gv, name), true
	default:
		return served{}, false // No group that is known here, or several: then the client refuses.
	}
}

// exactly is find for a client that asks no other group than the one that the API version names.
func exactly(apiVersion, name string, crds []schema.CRD) (found served, known bool) {
	gv, err := kinds.ParseGroupVersion(apiVersion)
	if err != nil || name == "" {
		return served{}, false
	}
	for _, candidate := range search(gv, name, crds) {
		if candidate.group == gv.Group {
			return candidate, true
		}
	}
	return guess(gv, name), true
}

// search returns the known kinds of the version; without a group in it, those of all groups.
func search(gv kinds.GroupVersion, name string, crds []schema.CRD) []served {
	var all []served
	add := func(s served) {
		if !slices.ContainsFunc(all, func(other served) bool { return other.group == s.group }) {
			all = append(all, s)
		}
	}
	for _, crd := range crds {
		names := append([]string{crd.Plural, crd.Singular}, crd.ShortNames...)
		if crd.Plural == "" || !strings.EqualFold(crd.Kind, name) && !slices.Contains(names, name) {
			continue
		}
		if crd.Group == gv.Group || gv.Group == "" && crd.Version(gv.Version) != nil {
			add(served{crd.Group, crd.Kind, crd.Plural, !crd.Namespaced})
		}
	}
	for _, kind := range wellKnown()[name] {
		if kind.Group == gv.Group || gv.Group == "" && kind.Version == gv.Version {
			add(guess(kind.GroupVersion(), kind.Kind))
		}
	}
	return all
}

// wellKnown returns Kubernetes' own kinds and others, by each of their names.
//
//nolint:gochecknoglobals // A table, which is made when it is first read.
var wellKnown = sync.OnceValue(func() map[string][]kinds.GroupVersionKind {
	all := map[string][]kinds.GroupVersionKind{}
	for _, kind := range slices.AppendSeq(slices.Clone(others), maps.Keys(scheme.Scheme.AllKnownTypes())) {
		if strings.HasSuffix(kind.Kind, "List") {
			continue
		}
		_, singular := words.Words(kind.Kind)
		for _, name := range []string{kind.Kind, guess(kind.GroupVersion(), kind.Kind).resource, singular, shortNames[kind.Kind]} {
			if name != "" && !slices.Contains(all[name], kind) {
				all[name] = append(all[name], kind)
			}
		}
	}
	return all
})

// OfPlural returns the kind of Kubernetes, of a common project or of the CRDs whose plural or singular the name is,
// in any case of letters; "" if there is none, or if the name is that of a kind itself.
func OfPlural(name string, crds []schema.CRD) string {
	if slices.ContainsFunc(crds, func(c schema.CRD) bool { return c.Kind == name }) || slices.ContainsFunc(wellKnown()[name], func(k kinds.GroupVersionKind) bool { return k.Kind == name }) {
		return ""
	}
	lower := strings.ToLower(name)
	for _, crd := range crds {
		if lower == crd.Plural || lower == strings.ToLower(crd.Kind) {
			return crd.Kind
		}
	}
	for _, known := range wellKnown()[lower] {
		if plural, singular := words.Words(known.Kind); lower == plural || lower == singular {
			return known.Kind
		}
	}
	return ""
}

// guess returns a kind by the rules for plurals. The name may be a plural too.
func guess(gv kinds.GroupVersion, name string) served {
	s := served{gv.Group, name, name, slices.Contains(withoutNamespace, name)}
	if strings.ToLower(name) != name || !strings.HasSuffix(name, "s") {
		plural, _ := words.Words(name)
		s.resource = cmp.Or(otherPlurals[kinds.GroupKind{Group: gv.Group, Kind: name}], plural)
	}
	return s
}

// otherPlurals are plurals that do not follow the rules.
//
//nolint:gochecknoglobals // A table.
var otherPlurals = map[kinds.GroupKind]string{
	{Group: "k8s.cni.cncf.io", Kind: "NetworkAttachmentDefinition"}: "network-attachment-definitions",
	{Group: "k8s.cni.cncf.io", Kind: "MultiNetworkPolicy"}:          "multi-networkpolicies",
}

// shortNames are those of Kubernetes' own kinds.
//
//nolint:gochecknoglobals // A table.
var shortNames = map[string]string{
	"ConfigMap": "cm", "Endpoints": "ep", "Event": "ev", "LimitRange": "limits", "Namespace": "ns", "Node": "no",
	"PersistentVolumeClaim": "pvc", "PersistentVolume": "pv", "Pod": "po", "ReplicationController": "rc", "ResourceQuota": "quota",
	"ServiceAccount": "sa", "Service": "svc", "DaemonSet": "ds", "Deployment": "deploy", "ReplicaSet": "rs", "StatefulSet": "sts",
	"HorizontalPodAutoscaler": "hpa", "CronJob": "cj", "CertificateSigningRequest": "csr", "Ingress": "ing", "NetworkPolicy": "netpol",
	"PodDisruptionBudget": "pdb", "PriorityClass": "pc", "StorageClass": "sc",
}

// others are kinds that client-go does not know: two of Kubernetes' own, and common kinds that only
// one project has by that name.
//
//nolint:gochecknoglobals // A table.
var others = []kinds.GroupVersionKind{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
	{Group: "apps.openshift.io", Version: "v1", Kind: "DeploymentConfig"},
	{Group: "build.openshift.io", Version: "v1", Kind: "BuildConfig"},
	{Group: "config.openshift.io", Version: "v1", Kind: "ClusterVersion"},
	{Group: "image.openshift.io", Version: "v1", Kind: "ImageStream"},
	{Group: "project.openshift.io", Version: "v1", Kind: "Project"},
	{Group: "route.openshift.io", Version: "v1", Kind: "Route"},
	{Group: "security.openshift.io", Version: "v1", Kind: "SecurityContextConstraints"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"},
	{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"},
	{Group: "cert-manager.io", Version: "v1", Kind: "ClusterIssuer"},
	{Group: "cert-manager.io", Version: "v1", Kind: "Issuer"},
	{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"},
}

//nolint:gochecknoglobals // A table.
var withoutNamespace = strings.Fields(`Namespace Node PersistentVolume ClusterRole ClusterRoleBinding StorageClass VolumeAttachment
	CustomResourceDefinition PriorityClass IngressClass RuntimeClass CSIDriver CSINode APIService ClusterIssuer ComponentStatus
	ValidatingWebhookConfiguration MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
	CertificateSigningRequest FlowSchema PriorityLevelConfiguration GatewayClass Project ClusterVersion SecurityContextConstraints`)
