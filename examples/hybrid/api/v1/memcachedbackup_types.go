package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MemcachedBackupSpec is what a user asks for.
type MemcachedBackupSpec struct {
	// Size is the number of servers that stand by. The webhook refuses more than five.
	// +kubebuilder:validation:Minimum=0
	// +required
	Size int32 `json:"size"`
}

// MemcachedBackupStatus is what the operator has seen.
type MemcachedBackupStatus struct {
	// Nodes are the names of the pods, in their order.
	// +listType=set
	// +optional
	Nodes []string `json:"nodes,omitempty"`
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Size,type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name=Nodes,type=string,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`

// MemcachedBackup keeps servers of memcached that stand by.
type MemcachedBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec MemcachedBackupSpec `json:"spec"`
	// +optional
	Status MemcachedBackupStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// MemcachedBackupList is a list of MemcachedBackups.
type MemcachedBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []MemcachedBackup `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(s *runtime.Scheme) error {
		s.AddKnownTypes(SchemeGroupVersion, &MemcachedBackup{}, &MemcachedBackupList{})
		return nil
	})
}
