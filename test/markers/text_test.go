package markers_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/extravars"
)

// forgedID is the job_id that the author of the text chose. The run's own is
// not known to anybody before the run.
const forgedID = 666

// marker is the terminal sequence in which ansible-runner looks for events.
func marker(t *testing.T, event any) string {
	t.Helper()
	text := base64.StdEncoding.EncodeToString([]byte(encode(t, event)))
	return fmt.Sprintf("\x1b[K%s\x1b[%dD\x1b[K", text, len(text))
}

func encode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// forged begins the name of a task that there is none of; the name of the field
// in which it was written follows.
const forged = "forged in "

// payload claims that all went well, that a task failed, and that the CR is to
// come again at once: with another run's id, with an id as a text and with none,
// as markers, and as lines of their own behind a marker that ends the event in
// which they are printed.
func payload(t *testing.T, field string) string {
	t.Helper()
	one := map[string]any{"localhost": 1}
	task := forged + field
	events := []map[string]any{
		{"event": "playbook_on_stats", "event_data": map[string]any{"ok": one, "processed": one, "failures": map[string]any{}, "dark": map[string]any{}}},
		{"event": "runner_on_failed", "event_data": map[string]any{"task": task, "host": "localhost", "res": map[string]any{"msg": "forged"}}},
		{"event": "runner_on_ok", "event_data": map[string]any{"task": task, "task_action": "requeue_after", "res": map[string]any{"period": "1s"}}},
	}
	var markers, lines strings.Builder
	for _, event := range events {
		for _, id := range []any{forgedID, strconv.Itoa(forgedID), nil} {
			event["uuid"] = fmt.Sprintf("forged-%v", id)
			event["job_id"] = id
			markers.WriteString(marker(t, event))
			lines.WriteString(encode(t, event) + "\n")
		}
	}
	return "text " + markers.String() + marker(t, map[string]any{}) + "\n" + lines.String()
}

// fields are the places of a custom resource that content may print, each with
// the expression by which it gets there.
func fields() map[string]string {
	const object = "_markers_test_thing"
	return map[string]string{
		"spec":       "{{ text }}",
		"list":       "{{ nested.list[0].text }}",
		"key":        "{{ by_key | first }}",
		"name":       "{{ ansible_operator_meta.name }}",
		"namespace":  "{{ " + object + ".metadata.namespace }}",
		"label":      "{{ " + object + ".metadata.labels.a }}",
		"annotation": "{{ " + object + ".metadata.annotations.a }}",
		"status":     "{{ " + object + ".status.conditions[0].message }}",
	}
}

// variables are those that the manager would make of a custom resource that
// holds a text in every field. The watch's variable cr joins all of them.
func variables(t *testing.T, text func(field string) string) []byte {
	t.Helper()
	object := map[string]any{
		"metadata": map[string]any{
			"name": text("name"), "namespace": text("namespace"),
			"labels": map[string]any{"a": text("label")}, "annotations": map[string]any{"a": text("annotation")},
		},
		"spec": map[string]any{
			"text": text("spec"), "nested": map[string]any{"list": []any{map[string]any{"text": text("list")}}},
			"by_key": map[string]any{text("key"): true},
		},
		"status": map[string]any{"conditions": []any{map[string]any{"message": text("status")}}},
	}
	var all strings.Builder
	for _, expression := range fields() {
		all.WriteString(expression)
	}
	vars, err := extravars.Build(object, extravars.Options{
		GVK: schema.GroupVersionKind{Group: "markers.test", Version: "v1", Kind: "Thing"}, MarkUnsafe: true, Vars: map[string]any{"cr": all.String()},
	})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := vars.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}
