package check

import (
	"strings"
	"testing"
)

func TestReadyThatTasksWrite(t *testing.T) {
	const file = "roles/r/tasks/main.yml"
	const writes = "- ensign.operator.k8s_status: {kind: Thing, name: x, conditions: [{type: Found, status: 'True'}, {type: Ready, status: 'True'}]}\n"
	for name, test := range map[string]struct {
		ready, task string
		want        []string
	}{
		"the watch does not say":     {"", writes, []string{file + ":1 info ready"}},
		"it is the manager's":        {"manager", writes, []string{file + ":1 warning ready"}},
		"it is the content's":        {"content", writes, nil},
		"another condition":          {"manager", strings.ReplaceAll(writes, "Ready", "Lost"), nil},
		"conditions from a variable": {"manager", "- operator_sdk.util.k8s_status: {kind: Thing, name: x, conditions: '{{ c }}'}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, thing(), map[string]string{file: test.task})
			p.Units[0].Watch.Ready = test.ready
			p.ready(p.Units[0])
			want(t, p, test.want...)
		})
	}
}
