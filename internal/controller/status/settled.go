package status

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

// digestKey of the status tells with which content, settings of the watch, Python
// environment and annotations the last success came about.
const digestKey = "contentDigest"

// WithDigest adds to a report of success what it came about with. Without one,
// what an earlier success came about with is taken out.
func (r Report) WithDigest(digest string) Report {
	r.digest = digest
	return r
}

// Digest returns what the last success came about with, "" where the status of obj
// does not say it.
func Digest(obj *unstructured.Unstructured) string {
	digest, _, _ := unstructured.NestedString(obj.Object, "status", digestKey)
	return digest
}

// Settled reports whether the status of obj says that its generation was brought to
// success with the digest, and when that run ended. It is false where anything is
// missing, as with schemas that do not keep what Ensign writes, or kinds without
// generations: then nobody knows. So it is for an object that is younger than the run: its status was restored
// with it, and tells of another.
func Settled(obj *unstructured.Unstructured, digest string) (ended time.Time, ok bool) {
	status, _ := obj.Object["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	_, running := find(list, Running)
	_, successful := find(list, Successful)
	if digest == "" || obj.GetGeneration() == 0 || status[digestKey] != digest || status["observedGeneration"] != obj.GetGeneration() {
		return time.Time{}, false
	}
	if running["reason"] != string(jobevent.ReasonSuccessful) || successful["status"] != "True" {
		return time.Time{}, false
	}
	result, _ := running["ansibleResult"].(map[string]any)
	text, _ := result["completion"].(string)
	ended, err := time.Parse(completionFormat, text)
	return ended, err == nil && !ended.Before(obj.GetCreationTimestamp().Time)
}
