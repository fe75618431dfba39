package content

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status has the fields that a manager writes into the status of a resource. A kind that is a type
// in Go embeds it in the type of its status, beside fields of its own:
//
//	type MenuStatus struct {
//		content.Status `json:",inline"`
//	}
//
// Without these fields in the CRD's schema, the API server drops them: then resources run again
// after each restart, and nobody sees that a requested run is over.
// +kubebuilder:object:generate=false
type Status struct {
	// ObservedGeneration is the generation of the spec that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ContentDigest stands for the content and the settings with which the last run succeeded.
	// +optional
	ContentDigest string `json:"contentDigest,omitempty"`
	// ReconcileRequestedAt is the value of the annotation reconcile-requested-at that the last run
	// has seen.
	// +optional
	ReconcileRequestedAt string `json:"reconcileRequestedAt,omitempty"`
	// ContentRun is the last run that ended.
	// +optional
	ContentRun *LastRun `json:"contentRun,omitempty"`
	// Conditions say how the last run ended, and whether one is running.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LastRun is the last run that ended.
// +kubebuilder:object:generate=false
type LastRun struct {
	// EndedAt is when it ended.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
	// NextAt is when content runs again, after a failure or because it asked for it.
	// +optional
	NextAt *metav1.Time `json:"nextAt,omitempty"`
	// Version is that of the operator or of the chart, if known.
	// +optional
	Version string `json:"version,omitempty"`
	// Digest stands for the content and the settings of the run.
	// +optional
	Digest string `json:"digest,omitempty"`
	// ReadyBy is the digest of the content that has written the condition Ready; "" if the manager
	// writes it.
	// +optional
	ReadyBy string `json:"readyBy,omitempty"`
}

// DeepCopyInto copies the status into out.
func (in *Status) DeepCopyInto(out *Status) {
	*out = *in
	out.Conditions = slices.Clone(in.Conditions)
	if in.ContentRun != nil {
		run := *in.ContentRun
		run.EndedAt, run.NextAt = run.EndedAt.DeepCopy(), run.NextAt.DeepCopy()
		out.ContentRun = &run
	}
}

// DeepCopy returns a copy of the status; nil for nil.
func (in *Status) DeepCopy() *Status {
	if in == nil {
		return nil
	}
	out := new(Status)
	in.DeepCopyInto(out)
	return out
}
