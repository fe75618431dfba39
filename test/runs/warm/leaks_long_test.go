//go:build long

package warm

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// footprint is what the server holds, and this process.
type footprint map[string]int

// footprint waits until no fork is left, and measures.
func (b *counted) footprint() footprint {
	b.t.Helper()
	f := footprint{"goroutines": runtime.NumGoroutine(), "files": 0}
	err := filepath.WalkDir(filepath.Join(b.Runs, ".warm"), func(string, fs.DirEntry, error) error {
		f["files"]++
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	pids := servers(b.t, b)
	for _, pid := range pids {
		proc := "/proc/" + strconv.Itoa(pid)
		scratch.Eventually(b.t, "the end of the server's forks", func() bool { return len(childrenOf(b.t, pid)) == 0 })
		const name = "server"
		f["process of "+name] = pid
		f["memory of "+name+" in KiB"] = field(b.t, proc+"/smaps_rollup", "Rss:")
		f["threads of "+name] = field(b.t, proc+"/status", "Threads:")
		if f["descriptors of "+name], err = harness.Descriptors(pid); err != nil {
			b.t.Fatal(err)
		}
	}
	if len(pids) != 1 {
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
	const modules, runs = 10_000, 200
	b := newBench(t, map[string]string{
		"fail.yml": "- hosts: localhost\n  gather_facts: false\n  tasks: [{fail: }]\n",
		"many.yml": "- hosts: localhost\n  gather_facts: false\n  tasks: [{ping: , with_sequence: start=1 end=500}]\n",
	})
	b.heat()
	play := func(count int, name string, want content.Verdict) {
		for range count {
			if result, _ := b.play(name); result.Outcome.Verdict != want {
				t.Fatalf("got %+v", result.Outcome)
			}
		}
	}
	play(20, "heat.yml", content.Succeeded)
	b.refusals()
	before := b.footprint()
	begun := time.Now()
	play(modules/500, "many.yml", content.Succeeded)
	play(runs*9/10, "heat.yml", content.Succeeded)
	play(runs/10, "fail.yml", content.Failed)
	after := b.footprint()
	t.Logf("%d modules and %d runs took %s; from %v to %v", modules, runs, time.Since(begun).Round(time.Second), before, after)
	if grown := after.grown(before); len(grown) > 0 {
		t.Errorf("grown by %d modules and %d runs: %q", modules, runs, grown)
	}
	warm := b.forked["python"]
	if cold := b.refusals(); len(cold) > 0 || warm < modules+runs*9/10 {
		t.Errorf("%d were forked, and refused were %q", warm, cold)
	}
}
