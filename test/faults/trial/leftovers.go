package trial

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"

	"github.com/ensign-operator/ensign/test/harness"
)

// processes are the live processes that carry dir in their environment or their
// command line, but for a manager and its servers for warm runs, which live as long as
// it does, and not longer.
func processes(dir string, manager int) []harness.Process {
	found, _ := harness.ProcessesOf(dir)
	return slices.DeleteFunc(found, func(p harness.Process) bool {
		return p.PID == os.Getpid() || p.PID == manager || p.Server && p.Parent == manager
	})
}

// told names the processes.
func told(found []harness.Process) []string {
	var texts []string
	for _, p := range found {
		texts = append(texts, fmt.Sprintf("process %d: %s", p.PID, p.CommandLine))
	}
	return texts
}

// kill ends what a failed trial left.
func kill(dir string) {
	for _, p := range processes(dir, 0) {
		_ = syscall.Kill(p.PID, syscall.SIGKILL) // It may have ended meanwhile.
	}
}

// alive is true for a process that has not ended.
func alive(pid int) bool {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	stat, err := p.Stat()
	// X is what a zombie is for the moment in which it is collected.
	return err == nil && stat.State != "Z" && stat.State != "X"
}

// zombies lists the children of a process that it has not waited for.
func zombies(parent int) []string {
	all, _ := procfs.AllProcs()
	var found []string
	for _, p := range all {
		if stat, err := p.Stat(); err == nil && stat.PPID == parent && stat.State == "Z" {
			found = append(found, fmt.Sprintf("zombie %d", p.PID))
		}
	}
	return found
}

// descriptors lists the open files of a process that belong to runs.
func descriptors(pid int, runDir string) []string {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return nil
	}
	targets, _ := p.FileDescriptorTargets() // It may have ended.
	var found []string
	for _, target := range targets {
		if strings.HasPrefix(target, runDir+"/") && !strings.HasPrefix(filepath.Base(target), ".") {
			found = append(found, "descriptor of "+target)
		}
	}
	return found
}

// directories lists what is in a run directory beside that of the resource, and what
// is left of runs. uid is "" where there is no resource.
func directories(runDir, uid string) []string {
	homes, err := os.ReadDir(runDir)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, home := range homes {
		if strings.HasPrefix(home.Name(), ".") {
			continue
		}
		if home.Name() != uid {
			found = append(found, "the directory of a resource that is gone: "+home.Name())
		}
		if _, err := os.Lstat(filepath.Join(runDir, home.Name(), "run")); err == nil {
			found = append(found, "the directory of a run: "+home.Name())
		}
	}
	return found
}

// holding lists the files below dir that hold the token of a run.
func holding(dir, token string) (found []string) {
	files := os.DirFS(dir)
	if _, err := fs.Stat(files, "."); err != nil {
		return []string{err.Error()}
	}
	_ = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if content, _ := fs.ReadFile(files, path); bytes.Contains(content, []byte(token)) {
				found = append(found, "a token of a run is in "+filepath.Join(dir, path))
			}
		}
		return nil // What went meanwhile holds nothing.
	})
	return found
}
