package fire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ensign-operator/ensign/test/harness/idle"
)

// Where runs keep their journal and look for what they wait for.
const (
	journalVariable = "FIRE_JOURNAL"
	gatesVariable   = "FIRE_GATES"
)

// ran is an entry of the runs' journal.
type ran struct {
	UID        string `json:"uid"`
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	Finalizing bool   `json:"finalizing"`
	// Ended is false for the entry of a run's beginning.
	Ended bool `json:"ended"`
}

// text is a string as extra vars mark it.
type text struct {
	Unsafe string `json:"__ansible_unsafe"`
}

// variables are what a run reads of its extra vars.
type variables struct {
	Canary     *text `json:"c"`
	Finalizing bool  `json:"finalizing"`
	// Hold names the gate that the run waits for, Fail what it fails with.
	Hold  text    `json:"hold"`
	Fail  text    `json:"fail"`
	Flame *object `json:"_fire_ensign_io_flame"`
	Spark *object `json:"_fire_ensign_io_spark"`
	Ash   *object `json:"_fire_ensign_io_ash"`
}

type object struct {
	Metadata struct {
		UID        text  `json:"uid"`
		Name       text  `json:"name"`
		Generation int64 `json:"generation"`
	} `json:"metadata"`
}

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
// start, or a run that writes the journal.
func stubRun(args []string) int {
	var vars variables
	content, err := os.ReadFile(filepath.Join(args[2], "env", "extravars"))
	must(err)
	must(json.Unmarshal(content, &vars))
	if vars.Canary != nil {
		event("runner_on_ok", `{"task":"canary","res":{"msg":["`+vars.Canary.Unsafe+`"]}}`)
		return 0
	}
	cr := cmp.Or(vars.Flame, vars.Spark, vars.Ash)
	entry := ran{UID: cr.Metadata.UID.Unsafe, Name: cr.Metadata.Name.Unsafe, Generation: cr.Metadata.Generation, Finalizing: vars.Finalizing}
	keep(entry)
	event("playbook_on_task_start", `{"play":"p","task":"burn"}`)
	if gate := vars.Hold.Unsafe; gate != "" && !vars.Finalizing {
		waitFor(filepath.Join(os.Getenv(gatesVariable), gate))
	}
	entry.Ended = true
	keep(entry)
	failures := 0
	if vars.Fail.Unsafe != "" && !vars.Finalizing {
		failures = 1
		event("runner_on_failed", fmt.Sprintf(`{"play":"p","task":"burn","host":"localhost","res":{"msg":%q}}`, vars.Fail.Unsafe))
	}
	event("playbook_on_stats", fmt.Sprintf(`{"ok":{"localhost":1},"failures":{"localhost":%d},"processed":{"localhost":1}}`, failures))
	return 2 * failures
}

func event(kind, data string) {
	job := os.Getenv("JOB_ID")
	if job == "" {
		job = "null"
	}
	fmt.Printf(`{"uuid":"u","created":"2026-01-02T03:04:05.678901+00:00","job_id":%s,"event":%q,"event_data":%s}`+"\n", job, kind, data)
}

// keep adds an entry to the journal, whole or not at all.
func keep(entry ran) {
	line, err := json.Marshal(entry)
	must(err)
	file, err := os.OpenFile(os.Getenv(journalVariable), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	must(err)
	_, err = file.Write(append(line, '\n'))
	must(err)
	must(file.Close())
}

// waitFor waits until there is such a file; a signal ends the process.
func waitFor(path string) {
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// readJournal returns what runs have written so far.
func readJournal(path string) ([]ran, error) {
	content, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var all []ran
	for line := range strings.Lines(string(content)) {
		var entry ran
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			return nil, err
		}
		all = append(all, entry)
	}
	return all, nil
}
