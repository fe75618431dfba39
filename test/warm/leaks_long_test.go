//go:build long

package warm

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

// footprint is what a server holds, and the pool for all of them.
type footprint map[string]int

// footprint waits until no fork is left, and measures.
func (b *bench) footprint() footprint {
	b.t.Helper()
	f := footprint{"goroutines of the pool": runtime.NumGoroutine(), "files": 0}
	err := filepath.WalkDir(filepath.Join(b.runs, ".warm"), func(string, fs.DirEntry, error) error {
		f["files"]++
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	pids := servers(b.t, b)
	for _, pid := range pids {
		proc := "/proc/" + strconv.Itoa(pid)
		for deadline := time.Now().Add(patience); len(childrenOf(b.t, pid)) > 0; <-time.After(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				b.t.Fatalf("server %d keeps forks: %v", pid, childrenOf(b.t, pid))
			}
		}
		line, err := os.ReadFile(proc + "/cmdline")
		if err != nil {
			b.t.Fatal(err)
		}
		name := strings.Split(string(line), "\x00")[2]
		f["process of "+name] = pid
		f["memory of "+name+" in KiB"] = field(b.t, proc+"/smaps_rollup", "Rss:")
		f["threads of "+name] = field(b.t, proc+"/status", "Threads:")
		descriptors, err := os.ReadDir(proc + "/fd")
		if err != nil {
			b.t.Fatal(err)
		}
		f["descriptors of "+name] = len(descriptors)
	}
	if len(pids) != len(kindsOfServers()) {
		b.t.Fatalf("got servers %v", pids)
	}
	return f
}

func field(t *testing.T, file, name string) int {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			value, err := strconv.Atoi(words[1])
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	t.Fatalf("%s has no %s", file, name)
	return 0
}

// grown tells what is more than 5 % larger than before.
func (f footprint) grown(before footprint) []string {
	const percent = 5
	var found []string
	for what, value := range f {
		if old := before[what]; value*100 > old*(100+percent) || strings.HasPrefix(what, "process") && value != old {
			found = append(found, fmt.Sprintf("%s: %d, before %d", what, value, old))
		}
	}
	return found
}

func TestNothingGrows(t *testing.T) {
	const forks, runs = 10_000, 200
	b := newBench(t, map[string]string{
		"nothing.py": "import json, tempfile, subprocess, urllib.request\njson.dumps(list(range(1000)))\n",
		"fail.yml":   "- hosts: localhost\n  gather_facts: false\n  tasks: [{fail: }]\n",
	})
	b.heat()
	play := func(count int) {
		for i := range count {
			name, want := "heat.yml", jobevent.Succeeded
			if i%10 == 9 {
				name, want = "fail.yml", jobevent.Failed
			}
			if result, _ := b.play(name, false); result.Outcome.Verdict != want {
				t.Fatalf("got %+v", result.Outcome)
			}
		}
	}
	play(20)
	b.modules(200)
	b.refusals()
	before := b.footprint()
	begun := time.Now()
	b.modules(forks)
	play(runs)
	after := b.footprint()
	t.Logf("%d modules and %d runs took %s; from %v to %v", forks, runs, time.Since(begun).Round(time.Second), before, after)
	if grown := after.grown(before); len(grown) > 0 {
		t.Errorf("grown by %d modules and %d runs: %q", forks, runs, grown)
	}
	warm := b.forked["python"]
	if cold := b.refusals(); len(cold) > 0 || warm < forks+runs*9/10 {
		t.Errorf("%d were forked, and refused were %q", warm, cold)
	}
}

// modules runs as many modules that do nothing, two at a time.
func (b *bench) modules(count int) {
	b.t.Helper()
	standin := filepath.Join(filepath.Dir(b.launchable()), "python")
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for range count / 2 {
				cmd := exec.Command(standin, filepath.Join(b.content, "nothing.py"))
				cmd.Env = b.env()
				if out, err := cmd.CombinedOutput(); err != nil {
					b.t.Errorf("%v: %s", err, out)
					return
				}
			}
		})
	}
	group.Wait()
}
