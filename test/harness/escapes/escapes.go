// Package escapes has texts that ansible-runner takes for job events where Ansible
// displays them, as the author of a custom resource may write them. It does not run
// anything.
package escapes

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// marker is the terminal sequence in which ansible-runner looks for events.
func marker(text string) string {
	encoded := base64.StdEncoding.EncodeToString([]byte(text))
	return fmt.Sprintf("\x1b[K%s\x1b[%dD\x1b[K", encoded, len(encoded))
}

// pieces is a marker as ansible-runner's callback writes a long one.
func pieces(text string) string {
	const width = 78
	encoded := base64.StdEncoding.EncodeToString([]byte(text))
	var all strings.Builder
	for len(encoded) > 0 {
		piece := encoded[:min(width, len(encoded))]
		fmt.Fprintf(&all, "%s\x1b[%dD", piece, len(piece))
		encoded = encoded[len(piece):]
	}
	return "\x1b[K" + all.String() + "\x1b[K"
}

const (
	stats = `{"event": "playbook_on_stats", "uuid": "%s", "job_id": %s, "event_data": {"ok": {"localhost": 1}, "processed": {"localhost": 1}}}`
	again = `{"event": "runner_on_ok", "uuid": "u", "job_id": %s, "event_data": {"task": "forged", "task_action": "requeue_after", "res": {"period": "1s"}}}`
	wrong = `{"event": "runner_on_failed", "uuid": "u", "job_id": %s, "event_data": {"task": "forged", "host": "localhost", "res": {"msg": "forged"}}}`
)

// Texts are those that end plain ansible-runner, or have it open a file of the author's
// choice, and then others like them.
func Texts() []string {
	const id = "666" // The run's own is not known to anybody before the run.
	everything := fmt.Sprintf(stats, "u", id) + "\n" + fmt.Sprintf(again, id) + "\n" + fmt.Sprintf(wrong, id)
	return []string{
		marker("[1,2]"),
		marker(`{"uuid": "../../../../../chosen", "job_id": 666}`) + marker("{}"),
		marker(fmt.Sprintf(stats, "u", id)) + marker(fmt.Sprintf(wrong, id)) + marker(fmt.Sprintf(again, id)) + marker("{}"),
		marker("null"),
		marker("7"),
		marker(`"text"`),
		marker("true"),
		marker(`{"uuid": 7}`),
		marker(`{"uuid": ["a"]}`),
		marker(`{"uuid": {"a": 1}}`),
		marker(`{"uuid": "a\u0000b"}`),
		marker(`{"uuid": "/chosen", "event": 7}`) + marker("{}"),
		marker(`{"uuid": "u", "event": "playbook_on_stats", "event_data": [1]}`),
		marker("\xff\xfe"),
		"\x1b[Kno base64\x1b[5D\x1b[K\x1b[K\x1b[K" + marker(`{"uuid": "u"}`)[:9],
		pieces(fmt.Sprintf(stats, strings.Repeat("u", 200), id)) + pieces("{}"),
		marker("{}") + "\r\n" + everything + "\r\n" + marker("{}"),
		"\x1e" + everything + "\x0c" + strings.Repeat("\n"+fmt.Sprintf(stats, "u", `"666"`), 3),
	}
}
