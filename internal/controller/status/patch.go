package status

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/pkg/content"
)

// Bounds of the texts, in bytes. With them the conditions need less than 20 KiB as JSON,
// whatever failed.
const (
	maxMessage = 4 << 10
	maxReason  = 256
	maxTask    = 256
	maxWaits   = 1024
	// maxReadyMessage is that of the conditions of kstatus, which repeat another's.
	maxReadyMessage = 512
	cutMark         = "… [cut]"
)

// Operation is one operation of a JSON Patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Patch returns the operations that write the report to the status of obj, as it was just
// read, Tests first. It returns none if the status has all of it already, or observes a
// later generation than the report's. An observed generation that the object has not reached
// does not count: a role wrote the key, or the status was restored. A lastTransitionTime
// becomes now exactly when the status of its condition changes.
func Patch(obj *unstructured.Unstructured, r Report, now time.Time) []Operation {
	current, isMap := obj.Object["status"].(map[string]any)
	if observed, ok := current["observedGeneration"].(int64); ok && r.generation < observed && observed <= obj.GetGeneration() {
		return nil
	}
	if r.during && !showsRun(current) {
		return nil
	}
	changes := append(conditionChanges(current, r, now), fieldChanges(current, r.wantedFields(current))...)
	if len(changes) == 0 {
		return nil
	}
	ops := Tests(obj)
	if !isMap {
		ops = append(ops, Operation{Op: "add", Path: "/status", Value: map[string]any{}})
	}
	return append(ops, changes...)
}

// showsRun reports whether a status shows a current run.
func showsRun(current map[string]any) bool {
	list, _ := current["conditions"].([]any)
	_, running := find(list, Running)
	return running["status"] == "True" && running["reason"] == string(ReasonRunning)
}

// wantedFields returns the keys that a status must have, and those that it must not have.
func (r Report) wantedFields(current map[string]any) map[string]any {
	if !r.idle {
		r = r.with("observedGeneration", r.generation)
	}
	old, _ := current[runKey].(map[string]any)
	if r.nothingRan && old[nextKey] != nil {
		kept := maps.Clone(old)
		delete(kept, nextKey)
		r = r.with(runKey, kept)
	}
	if mark := r.mark(current); r.ran && mark != "" {
		run := maps.Clone(r.fields[runKey].(map[string]any)) //nolint:forcetypeassert // WithRun sets it with ran.
		run[readyKey] = mark
		r = r.with(runKey, run)
	}
	return r.fields
}

// fieldChanges sets and removes keys of the status, sorted.
func fieldChanges(current, fields map[string]any) []Operation {
	var ops []Operation
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		old, exists := current[key]
		switch value := fields[key]; {
		case value == nil && exists:
			ops = append(ops, Operation{Op: "remove", Path: "/status/" + key})
		case value != nil && !reflect.DeepEqual(old, value):
			ops = append(ops, Operation{Op: "add", Path: "/status/" + key, Value: value})
		}
	}
	return ops
}

// Dropped returns the keys of the status that the operations have set and that the answer of the API
// server lacks: the schema of the kind does not have them.
func Dropped(answer *unstructured.Unstructured, operations []Operation) (keys []string) {
	current, _ := answer.Object["status"].(map[string]any)
	for _, o := range operations {
		key, found := strings.CutPrefix(o.Path, "/status/")
		if _, kept := current[key]; found && o.Op == "add" && !kept && !strings.Contains(key, "/") {
			keys = append(keys, key)
		}
	}
	return keys
}

// Tests returns the operations with which a patch of obj starts. They make it fail if the
// object was replaced by another of the same name, or changed by another writer.
func Tests(obj *unstructured.Unstructured) []Operation {
	return []Operation{
		{Op: "test", Path: "/metadata/uid", Value: string(obj.GetUID())},
		{Op: "test", Path: "/metadata/resourceVersion", Value: obj.GetResourceVersion()},
	}
}

// conditionChanges addresses each of Ensign's conditions by its index, which the test of the
// resourceVersion keeps valid. The conditions of other writers are not sent.
func conditionChanges(current map[string]any, r Report, now time.Time) []Operation {
	list, isList := current["conditions"].([]any)
	var ops []Operation
	if !isList {
		ops = append(ops, Operation{Op: "add", Path: "/status/conditions", Value: []any{}})
	}
	ready, notReady := r.readiness(current)
	for _, want := range append(slices.Clip(r.wanted(list)), ready...) {
		index, old := find(list, Type(want.Type))
		value := r.render(want, old, now)
		switch {
		case old == nil:
			ops = append(ops, Operation{Op: "add", Path: "/status/conditions/-", Value: value})
		case !reflect.DeepEqual(old, value):
			ops = append(ops, Operation{Op: "replace", Path: fmt.Sprintf("/status/conditions/%d", index), Value: value})
		}
	}
	for index, item := range slices.Backward(list) { // From the end: a removal moves the later items.
		if c, _ := item.(map[string]any); slices.Contains(append(notReady, r.removed...), fmt.Sprint(c["type"])) {
			ops = append(ops, Operation{Op: "remove", Path: fmt.Sprintf("/status/conditions/%d", index)})
		}
	}
	return ops
}

func (r Report) wanted(list []any) []metav1.Condition {
	wanted := r.conditions
	for _, c := range r.onlyNew {
		if _, old := find(list, Type(c.Type)); old == nil || old["observedGeneration"] != r.generation {
			wanted = append(slices.Clip(wanted), c)
		}
	}
	return wanted
}

func find(list []any, kind Type) (int, map[string]any) {
	for i, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == string(kind) {
			return i, c
		}
	}
	return -1, nil
}

// render returns a condition of the report as the status has it after old, the one of its type.
func (r Report) render(c metav1.Condition, old map[string]any, now time.Time) map[string]any {
	transition := now.UTC().Format(time.RFC3339)
	if since, ok := old["lastTransitionTime"].(string); ok && old["status"] == string(c.Status) {
		transition = since
	}
	value := map[string]any{
		"type":               c.Type,
		"status":             string(c.Status),
		"reason":             bounded(c.Reason, maxReason),
		"message":            bounded(c.Message, maxMessage),
		"lastTransitionTime": transition,
		"observedGeneration": r.generation,
	}
	if r.counts != nil && c.Status == metav1.ConditionTrue && slices.Contains([]Type{Running, Successful, Failure}, Type(c.Type)) {
		value["ansibleResult"] = r.counts
	}
	return value
}

// bounded cuts a text between characters at limit bytes, or earlier if it would have more than
// three times as many bytes as JSON, and marks the cut. Bytes that are not UTF-8 are replaced, as
// the API server would.
func bounded(text string, limit int) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	encoded, end := 0, 0
	for i, r := range text {
		size := i + utf8.RuneLen(r)
		encoded += encodedSize(r)
		if size > limit || encoded > 3*limit {
			return text[:end] + cutMark
		}
		if size <= limit-len(cutMark) && encoded <= 3*limit-len(cutMark) {
			end = size
		}
	}
	return text
}

// encodedSize returns the number of bytes of a character in the JSON of a request and of
// etcd, which escapes characters that have a meaning in HTML.
func encodedSize(r rune) int {
	switch {
	case strings.ContainsRune("\"\\\n\t\r", r):
		return 2
	case r < ' ' || strings.ContainsRune("<>&\u2028\u2029", r):
		return len(`\u0000`)
	}
	return utf8.RuneLen(r)
}

// Last returns the outcome that the conditions of obj show, perhaps that of an earlier
// generation; the zero outcome if no run has ended.
func Last(obj *unstructured.Unstructured) content.Outcome {
	return lastOf(conditionsOf(obj))
}

func lastOf(list []any) content.Outcome {
	if _, c := find(list, Failure); c["status"] == "True" {
		reason, _ := c["reason"].(string)
		message, _ := c["message"].(string)
		return content.Outcome{Verdict: content.Failed, Reason: content.Reason(reason), Message: message}
	}
	if _, c := find(list, Successful); c["status"] == "True" {
		return content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful}
	}
	return content.Outcome{}
}
