package status

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/pkg/content"
)

// completionFormat is that of the completion in an ansibleResult: microseconds without
// trailing zeros, UTC.
const completionFormat = "2006-01-02T15:04:05.999999+00:00"

// digestKey is the status key for the digest of all that the last successful run depended on:
// content, settings of the watch, Python environment and annotations.
const digestKey = "contentDigest"

// WithDigest adds the digest of all that a successful run depended on. A report of success without
// a digest removes that of an earlier run.
func (r Report) WithDigest(digest string) Report {
	if digest == "" {
		return r
	}
	return r.with(digestKey, digest)
}

// requestedKey is the key of the status for the request of a run that was answered last.
const requestedKey = "reconcileRequestedAt"

// WithRequest adds the value of the annotation that requested a run, as the run has seen it;
// "" is none. The status keeps its first 256 bytes, and an earlier one where there is none.
func (r Report) WithRequest(value string) Report {
	if value == "" {
		return r
	}
	return r.with(requestedKey, bounded(value, maxReason))
}

// Request returns the value of the last request that a run has answered, from the status of
// obj; "" if there was none.
func Request(obj *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(obj.Object, "status", requestedKey)
	return value
}

// Digest returns the digest of the last successful run from the status of obj, "" if it has
// none.
func Digest(obj *unstructured.Unstructured) string {
	digest, _, _ := unstructured.NestedString(obj.Object, "status", digestKey)
	return digest
}

// SucceededWith reports whether the status of obj proves that a run of its generation succeeded
// with the digest, and returns when that run ended. It is false if anything is missing, as with
// schemas that prune Ensign's fields, and kinds without generations. It is also false if the object
// is younger than the run: then the status was restored from that of another object.
func SucceededWith(obj *unstructured.Unstructured, digest string) (ended time.Time, ok bool) {
	status, _ := obj.Object["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	_, running := find(list, Running)
	_, successful := find(list, Successful)
	if digest == "" || obj.GetGeneration() == 0 || status[digestKey] != digest || status["observedGeneration"] != obj.GetGeneration() {
		return time.Time{}, false
	}
	if running["reason"] != string(content.ReasonSuccessful) || successful["status"] != "True" {
		return time.Time{}, false
	}
	if result, counted := running["ansibleResult"].(map[string]any); counted {
		text, _ := result["completion"].(string)
		ended, _ = time.Parse(completionFormat, text)
	} else {
		run, _ := status[runKey].(map[string]any) // nil for content that counts nothing.
		text, _ := run[endedKey].(string)
		ended, _ = time.Parse(time.RFC3339, text)
	}
	return ended, !ended.IsZero() && !ended.Before(obj.GetCreationTimestamp().Time)
}
