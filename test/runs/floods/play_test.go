package floods

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/ensign-operator/ensign/test/harness/script"
)

// flood is what a run prints: something before it, a text many times, and something
// behind it.
type flood struct {
	// kind is the job event whose result has it; "" is none.
	kind     string
	before   string
	repeated string
	times    int
	behind   string
	// hosts is of how many further hosts a report tells.
	hosts int
	// where it goes, if not to the standard output, which takes events alone.
	where place
	// failures is what the run reports of itself, and makes its exit code 2; -1
	// lets it end without a report, and before its first task.
	failures int
}

type place int

const (
	toStdout place = iota
	toStderr
	afterStats
)

func floods() map[string]flood {
	x99 := strings.Repeat("x", 99)
	return map[string]flood{
		"little":   {repeated: "a line\n", times: 1},
		"lines":    {repeated: x99 + "\n", times: 1_000_000},
		"gigabyte": {repeated: x99 + "\n", times: 10_000_000},
		"longest":  {repeated: "x", times: 1_000_000_000, behind: "\n"},
		"tiny":     {repeated: "x\n", times: 2_000_000},
		"tiniest":  {repeated: "\n", times: 20_000_000},
		"line":     {repeated: "x", times: 100_000_000, behind: "\n"},
		"object":   {repeated: `{"a":`, times: 20_000_000, behind: "\n"},
		"unended":  {repeated: "x", times: 100_000_000, where: afterStats},
		"stderr":   {repeated: "x", times: 100_000_000, where: toStderr},
		"nostats":  {repeated: "[ERROR]: " + x99[:90] + "\n", times: 1_000_000, where: toStderr, failures: -1},
		"bytes":    {repeated: "\x00\x1b[2J\xff\xfe\xc0\xaf\xed\xa0\x80\r\x07\u202e\n", times: 1_000_000, where: toStderr, failures: -1},
		"display":  {before: opening("verbose") + `,"stdout":"`, repeated: "x", times: 100_000_000, behind: "\"}\n"},
		"event":    {kind: "runner_on_ok", before: `"stdout":"`, repeated: "x", times: 20_000_000, behind: `"`},
		"failed":   {kind: "runner_on_failed", before: `"msg":"`, repeated: "y", times: 20_000_000, behind: `"`, failures: 1},
		"listed":   {kind: "runner_on_failed", before: `"stdout_lines":[`, repeated: `"x",`, times: 5_000_000, behind: `"x"]`, failures: 1},
		"nested":   {kind: "runner_on_failed", before: `"a":`, repeated: `[`, times: 100_000, behind: strings.Repeat(`]`, 100_000), failures: 1},
		"members":  {kind: "runner_on_failed", before: `"a":{`, repeated: `"k":"v",`, times: 2_000_000, behind: `"k":"v"}`, failures: 1},
		"controls": {kind: "runner_on_failed", before: `"msg":"\u001b]0;`, repeated: `\u0000\u0007\ud800\u202e\n`, times: 15_000, behind: `"`, failures: 1},
		"badjson":  {kind: "runner_on_failed", before: `"msg":"`, repeated: "\x00\xff\x1b", times: 1_000_000, behind: `"`, failures: 1},
		"events":   {repeated: result("runner_on_failed", `"msg":"`+strings.Repeat("x", 1000)+`","ignored":true`), times: 20_000},
		"hosts": {
			before: opening("playbook_on_stats") + `,"event_data":{"failures":{},"processed":{"localhost":1},"ok":{"localhost":7`,
			hosts:  200_000, behind: "}}}\n", failures: -1,
		},
	}
}

// opening begins a job event, whose object is not closed.
func opening(kind string) string {
	return fmt.Sprintf(`{"uuid":"u","created":"2026-01-02T03:04:05.678901+00:00","event":%q`, kind)
}

// result is the event of a task with such a result.
func result(kind, members string) string {
	return opening(kind) + `,"event_data":{"play":"p","task":"a flood","host":"localhost","res":{"changed":false,` + members + "}}}\n"
}

// play is a run with the flood that the CR's spec names.
func play(r *script.Run) (int, error) {
	name, _ := r.Variables["flood"].(string)
	f, known := floods()[name]
	if !known {
		return 0, fmt.Errorf("there is no flood %q", name)
	}
	if f.kind != "" {
		begin, end, _ := strings.Cut(result(f.kind, "FLOOD"), "FLOOD")
		f.before, f.behind = begin+f.before, f.behind+end
	}
	if f.failures >= 0 {
		r.Event("playbook_on_task_start", map[string]any{"play": "p", "task": "a flood"})
	}
	if f.where != afterStats {
		f.print(r)
	}
	if f.failures < 0 {
		return 1, nil
	}
	r.Stats(7, f.failures)
	if f.where == afterStats {
		f.print(r)
	}
	return 2 * f.failures, nil
}

func (f flood) print(r *script.Run) {
	if f.where == toStderr {
		_ = r.Out.Flush()
		r.Out.Reset(os.Stderr)
		defer func() {
			_ = r.Out.Flush()
			r.Out.Reset(os.Stdout)
		}()
	}
	const block = 1 << 16
	_, _ = r.Out.WriteString(f.before)
	for n := range f.hosts {
		_, _ = fmt.Fprintf(r.Out, `,"h%d":0`, n)
	}
	if f.times > 0 {
		many := max(1, block/len(f.repeated))
		large := bytes.Repeat([]byte(f.repeated), many)
		for ; f.times > many; f.times -= many {
			_, _ = r.Out.Write(large)
		}
		_, _ = r.Out.Write(large[:f.times*len(f.repeated)])
	}
	_, _ = r.Out.WriteString(f.behind)
}
