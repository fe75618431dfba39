package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// VisitorsAppSpec is what a user asks for.
type VisitorsAppSpec struct {
	// Size is how many backends there are.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	// +kubebuilder:default=1
	// +optional
	Size int32 `json:"size,omitempty"`
	// Title is the title of the page.
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[^\x00]*$`
	// +kubebuilder:default=Visitors
	// +optional
	Title *string `json:"title,omitempty"`
}

// VisitorsAppStatus is what the operator has seen.
type VisitorsAppStatus struct {
	// BackendImage is the image of the backend.
	// +optional
	BackendImage string `json:"backendImage,omitempty"`
	// FrontendImage is the image of the frontend.
	// +optional
	FrontendImage string `json:"frontendImage,omitempty"`
	// URL is where the page is, within the cluster.
	// +optional
	URL string `json:"url,omitempty"`
	// Ready tells whether all of the site is up. The condition Ready says what is not.
	// +optional
	Ready bool `json:"ready"`
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VisitorsApp keeps a Visitors site: a database, backends and a frontend.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Ready,type=boolean,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name=URL,type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')",message="the name of a VisitorsApp has 40 letters at most, all of a to z, 0 to 9 and -, the first one of a to z"
type VisitorsApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +kubebuilder:default={}
	// +optional
	Spec VisitorsAppSpec `json:"spec,omitzero"`
	// +optional
	Status VisitorsAppStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// VisitorsAppList is a list of VisitorsApps.
type VisitorsAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []VisitorsApp `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(s *runtime.Scheme) error {
		s.AddKnownTypes(SchemeGroupVersion, &VisitorsApp{}, &VisitorsAppList{})
		return nil
	})
}
