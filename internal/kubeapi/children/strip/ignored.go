package strip

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ignoredParts are the parts of an object, beside its status, that Kubernetes' own controllers,
// the scheduler or the API server write after its creation. A change of them is not drift.
//
// A controller's change of the content is drift if it was asked for: replicas by an
// autoscaler, the deletion of a finished Job.
type ignoredParts struct {
	labels, annotations, finalizers []string
	// fields are paths from the top level.
	fields [][]string
	// unless reports whether no controller writes the fields of this object; nil stands for
	// false.
	unless func(object map[string]any) bool
}

// ignoredInAllKinds returns the parts that are ignored in objects of every kind.
func ignoredInAllKinds() ignoredParts {
	return ignoredParts{finalizers: []string{
		// apiserver/pkg/registry/generic/registry/store.go, deletionFinalizersForGarbageCollection:
		// added by a deletion that asks for it, removed by the garbage collector.
		metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents,
	}}
}

// ignoredByKind returns the parts that are ignored in objects of one kind. The comments name
// the source file that writes them; paths without a module are in k8s.io/kubernetes.
func ignoredByKind() map[schema.GroupKind]ignoredParts {
	kinds := map[schema.GroupKind]ignoredParts{}
	for _, list := range []map[schema.GroupKind]ignoredParts{workloads(), volumes(), network(), accessControl(), extensions()} {
		maps.Copy(kinds, list)
	}
	return kinds
}

func workloads() map[schema.GroupKind]ignoredParts {
	return map[schema.GroupKind]ignoredParts{
		// pkg/controller/deployment/util/deployment_util.go, SetDeploymentRevision.
		{Group: "apps", Kind: "Deployment"}: {annotations: []string{"deployment.kubernetes.io/revision"}},
		// pkg/controller/deployment/util/deployment_util.go, SetNewReplicaSetAnnotations and
		// SetReplicasAnnotations: of a ReplicaSet that a Deployment has adopted.
		{Group: "apps", Kind: "ReplicaSet"}: {annotations: []string{
			"deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history",
			"deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas",
		}},
		// Field and labels: pkg/registry/core/pod/storage/storage.go, setPodNodeAndMetadata, with the
		// labels of plugin/pkg/admission/podtopologylabels/admission.go. Finalizer:
		// pkg/controller/job/job_controller.go, of a Pod that a Job has adopted.
		{Kind: "Pod"}: {
			fields:     [][]string{{"spec", "nodeName"}},
			labels:     []string{"topology.kubernetes.io/zone", "topology.kubernetes.io/region"},
			finalizers: []string{"batch.kubernetes.io/job-tracking"},
		},
		// Annotations: pkg/apis/autoscaling/annotations.go. Version v1 has the status in them.
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: {annotations: []string{
			"autoscaling.alpha.kubernetes.io/conditions", "autoscaling.alpha.kubernetes.io/current-metrics",
		}},
		// api/resource/v1/types.go, Finalizer: added by pkg/scheduler/framework/plugins/dynamicresources,
		// removed by pkg/controller/resourceclaim/controller.go.
		{Group: "resource.k8s.io", Kind: "ResourceClaim"}: {finalizers: []string{"resource.kubernetes.io/delete-protection"}},
	}
}

func volumes() map[schema.GroupKind]ignoredParts {
	return map[schema.GroupKind]ignoredParts{
		// Annotations: component-helpers/storage/volume/pv_helpers.go, written by
		// pkg/controller/volume/persistentvolume (bindClaimToVolume, setClaimProvisioner), the node by
		// pkg/scheduler/framework/plugins/volumebinding/binder.go, the resizer by
		// pkg/volume/util/resize_util.go, SetClaimResizer. Fields: pv_controller.go there,
		// bindClaimToVolume and assignDefaultStorageClass, which gives a class to a PVC that
		// has none. Finalizer: plugin/pkg/admission/storage/storageobjectinuseprotection and
		// pkg/controller/volume/pvcprotection.
		{Kind: "PersistentVolumeClaim"}: {
			annotations: []string{
				"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", "pv.kubernetes.io/migrated-to",
				"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner",
				"volume.kubernetes.io/selected-node", "volume.kubernetes.io/storage-resizer",
			},
			fields:     [][]string{{"spec", "volumeName"}, {"spec", "storageClassName"}},
			finalizers: []string{"kubernetes.io/pvc-protection"},
		},
		// The same files, for a volume: bindVolumeToClaim, updateVolumeMigrationAnnotationsAndFinalizers,
		// pkg/controller/volume/pvprotection.
		{Kind: "PersistentVolume"}: {
			annotations: []string{"pv.kubernetes.io/bound-by-controller", "pv.kubernetes.io/provisioned-by", "pv.kubernetes.io/migrated-to"},
			fields:      [][]string{{"spec", "claimRef"}},
			finalizers: []string{
				"kubernetes.io/pv-protection", "kubernetes.io/pv-controller", "external-provisioner.volume.kubernetes.io/finalizer",
			},
		},
		// pkg/controller/volume/vacprotection/vac_protection_controller.go.
		{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}: {finalizers: []string{"kubernetes.io/vac-protection"}},
	}
}

func network() map[schema.GroupKind]ignoredParts {
	return map[schema.GroupKind]ignoredParts{
		// cloud-provider/service/helpers/helper.go, of a Service of type LoadBalancer.
		{Kind: "Service"}: {finalizers: []string{"service.kubernetes.io/load-balancer-cleanup"}},
		// pkg/controller/endpoint/endpoints_controller.go, syncService. It applies to a Service
		// that has a selector, also if another client made the Endpoints; the label says so.
		{Kind: "Endpoints"}: {
			annotations: []string{"endpoints.kubernetes.io/last-change-trigger-time", "endpoints.kubernetes.io/over-capacity"},
			labels:      []string{"endpoints.kubernetes.io/managed-by"},
			fields:      [][]string{{"subsets"}},
			unless: func(object map[string]any) bool {
				manager, _, _ := unstructured.NestedString(object, "metadata", "labels", "endpoints.kubernetes.io/managed-by")
				return manager != "endpoint-controller"
			},
		},
		// pkg/controller/servicecidrs/servicecidrs_controller.go.
		{Group: "networking.k8s.io", Kind: "ServiceCIDR"}: {finalizers: []string{"networking.k8s.io/service-cidr-finalizer"}},
	}
}

func accessControl() map[schema.GroupKind]ignoredParts {
	return map[schema.GroupKind]ignoredParts{
		// pkg/controller/serviceaccount/tokens_controller.go: removeSecretReference.
		{Kind: "ServiceAccount"}: {fields: [][]string{{"secrets"}}},
		// The same file, generateTokenIfNeeded: the data of a Secret that asks for a token. Labels:
		// pkg/serviceaccount/legacy.go and pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go.
		{Kind: "Secret"}: {
			annotations: []string{"kubernetes.io/service-account.uid"},
			labels:      []string{"kubernetes.io/legacy-token-last-used", "kubernetes.io/legacy-token-invalid-since"},
			fields:      [][]string{{"data"}},
			unless:      func(object map[string]any) bool { return object["type"] != "kubernetes.io/service-account-token" },
		},
		// pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go, syncClusterRole.
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: {
			fields: [][]string{{"rules"}},
			unless: func(object map[string]any) bool { return object["aggregationRule"] == nil },
		},
	}
}

func extensions() map[schema.GroupKind]ignoredParts {
	return map[schema.GroupKind]ignoredParts{
		// pkg/controller/namespace/deletion/namespaced_resources_deleter.go, finalizeNamespace.
		{Kind: "Namespace"}: {fields: [][]string{{"spec", "finalizers"}}},
		// apiextensions-apiserver/pkg/registry/customresourcedefinition/etcd.go, Delete.
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {finalizers: []string{"customresourcecleanup.apiextensions.k8s.io"}},
	}
}
