package floods

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/ensign-operator/ensign/test/harness/idle"
)

// stub plays the programs of a Python environment that is none, and tells
// whether it did.
func stub(args []string) (exitCode int, played bool) {
	args = idle.Asked(args)
	switch filepath.Base(args[0]) {
	case "python3":
		fmt.Println(`{"python":"3.13.0","ansible_core":"2.21.5","ansible_runner":"2.4.3","collections":[],"installed":[],"contents":[]}`)
		return 0, true
	case "ansible-playbook":
		return 0, true
	case "ansible-runner":
		return stubRun(args), true
	}
	return 0, false
}

// stubRun plays `ansible-runner run DIR --json …`: the canary of the manager's
// start, or the flood that the CR's spec names.
func stubRun(args []string) int {
	content, err := os.ReadFile(filepath.Join(args[2], "env", "extravars"))
	if err != nil {
		panic(err)
	}
	var vars struct {
		Canary *text `json:"c"`
		Flood  *text `json:"flood"`
	}
	if err := json.Unmarshal(content, &vars); err != nil {
		panic(err)
	}
	p := &player{out: bufio.NewWriterSize(os.Stdout, 1<<20), job: os.Getenv("JOB_ID")}
	defer func() { _ = p.out.Flush() }()
	if vars.Canary != nil {
		p.event("runner_on_ok", `{"task":"canary","res":{"msg":["`+vars.Canary.Unsafe+`"]}}`)
		return 0
	}
	return p.run(floods()[vars.Flood.Unsafe])
}

type text struct {
	Unsafe string `json:"__ansible_unsafe"`
}

// flood is what a run prints.
type flood struct {
	print func(p *player)
	// failures is what the run reports of itself, and makes its exit code 2; -1
	// lets it end without a report, and before its first task.
	failures int
	// behind is printed last of all.
	behind func(p *player)
}

func floods() map[string]flood {
	all := map[string]flood{
		"little":   {print: func(p *player) { p.text("a line\n", 1) }},
		"lines":    {print: func(p *player) { p.text(strings.Repeat("x", 99)+"\n", 1_000_000) }},
		"gigabyte": {print: func(p *player) { p.text(strings.Repeat("x", 99)+"\n", 10_000_000) }},
		"longest":  {print: func(p *player) { p.text("x", 1_000_000_000); p.text("\n", 1) }},
		"tiny":     {print: func(p *player) { p.text("x\n", 2_000_000) }},
		"tiniest":  {print: func(p *player) { p.text("\n", 20_000_000) }},
		"line":     {print: func(p *player) { p.text("x", 100_000_000); p.text("\n", 1) }},
		"object":   {print: func(p *player) { p.text(`{"a":`, 20_000_000); p.text("\n", 1) }},
		"unended":  {behind: func(p *player) { p.text("x", 100_000_000) }},
		"stderr":   {print: func(p *player) { p.toStderr("x", 100_000_000) }},
		"nostats":  {print: func(p *player) { p.toStderr("[ERROR]: "+strings.Repeat("x", 90)+"\n", 1_000_000) }, failures: -1},
		"display": {print: func(p *player) {
			p.open("verbose")
			p.text(`,"stdout":"`, 1)
			p.text("x", 100_000_000)
			p.text("\"}\n", 1)
		}},
		"event":   {print: func(p *player) { p.result("runner_on_ok", `"stdout":"`, "x", 20_000_000, `"`) }},
		"failed":  {print: func(p *player) { p.result("runner_on_failed", `"msg":"`, "y", 20_000_000, `"`) }, failures: 1},
		"listed":  {print: func(p *player) { p.result("runner_on_failed", `"stdout_lines":[`, `"x",`, 5_000_000, `"x"]`) }, failures: 1},
		"nested":  {print: func(p *player) { p.result("runner_on_failed", `"a":`, `[`, 100_000, strings.Repeat(`]`, 100_000)) }, failures: 1},
		"members": {print: func(p *player) { p.result("runner_on_failed", `"a":{`, `"k":"v",`, 2_000_000, `"k":"v"}`) }, failures: 1},
		"controls": {print: func(p *player) {
			p.result("runner_on_failed", `"msg":"\u001b]0;`, `\u0000\u0007\ud800\u202e\n`, 15_000, `"`)
		}, failures: 1},
		"bytes":   {print: func(p *player) { p.toStderr("\x00\x1b[2J\xff\xfe\xc0\xaf\xed\xa0\x80\r\x07\u202e\n", 1_000_000) }, failures: -1},
		"badjson": {print: func(p *player) { p.result("runner_on_failed", `"msg":"`, "\x00\xff\x1b", 1_000_000, `"`) }, failures: 1},
		"hosts":   {print: func(p *player) { p.stats(200_000) }, failures: -1},
	}
	maps.Copy(all, map[string]flood{
		"events": {print: func(p *player) {
			for range 20_000 {
				p.result("runner_on_failed", `"msg":"`, "x", 1000, `","ignored":true`)
			}
		}},
	})
	return all
}

// player writes what ansible-runner would.
type player struct {
	out *bufio.Writer
	job string
	n   int
}

func (p *player) run(f flood) int {
	if f.failures >= 0 {
		p.event("playbook_on_task_start", `{"play":"p","task":"a flood"}`)
	}
	if f.print != nil {
		f.print(p)
	}
	code := 1
	if f.failures >= 0 {
		p.event("playbook_on_stats", fmt.Sprintf(`{"ok":{"localhost":7},"failures":{"localhost":%d},"processed":{"localhost":1}}`, f.failures))
		code = 2 * min(f.failures, 1)
	}
	if f.behind != nil {
		f.behind(p)
	}
	return code
}

// open begins a job event, whose object the caller goes on with.
func (p *player) open(kind string) {
	p.n++
	fmt.Fprintf(p.out, `{"uuid":"u%d","created":"2026-01-02T03:04:05.678901+00:00","job_id":%s,"event":%q`, p.n, p.job, kind)
}

func (p *player) event(kind, data string) {
	if p.job == "" {
		p.job = "null"
	}
	p.open(kind)
	fmt.Fprintf(p.out, ",\"event_data\":%s}\n", data)
}

// result is the event of a task whose result repeats something.
func (p *player) result(kind, begin, repeated string, times int, end string) {
	p.open(kind)
	p.text(`,"event_data":{"play":"p","task":"a flood","host":"localhost","res":{"changed":false,`+begin, 1)
	p.text(repeated, times)
	p.text(end+"}}}\n", 1)
}

// stats is a report about many hosts.
func (p *player) stats(hosts int) {
	p.open("playbook_on_stats")
	p.text(`,"event_data":{"failures":{},"processed":{"localhost":1},"ok":{"localhost":7`, 1)
	for n := range hosts {
		fmt.Fprintf(p.out, `,"h%d":0`, n)
	}
	p.text("}}}\n", 1)
}

func (p *player) text(repeated string, times int) {
	const block = 1 << 16
	many := max(1, block/len(repeated))
	large := bytes.Repeat([]byte(repeated), many)
	for ; times > many; times -= many {
		_, _ = p.out.Write(large)
	}
	_, _ = p.out.Write(large[:times*len(repeated)])
}

// toStderr writes where a run's text goes; the standard output takes events alone.
func (p *player) toStderr(repeated string, times int) {
	p.flushTo(os.Stderr)
	p.text(repeated, times)
	p.flushTo(os.Stdout)
}

func (p *player) flushTo(w io.Writer) {
	_ = p.out.Flush()
	p.out.Reset(w)
}
