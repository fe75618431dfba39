package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

// shortage is a resource of the machine that has run out, and what to do about it.
type shortage struct {
	errno  syscall.Errno
	remedy string
}

// shortages returns the known ones. A run that fails because of a shortage is retried like
// any failed run.
func (r *Runner) shortages() []shortage {
	disk := "; free some, let " + r.setting("ArtifactsMaxBytes") + " keep less, or choose another disk by " + r.setting("RunDir")
	return []shortage{
		{syscall.ENOSPC, "the disk of the run directory has no space or no inodes left" + disk},
		{syscall.EDQUOT, "the disk quota for the run directory is used up" + disk},
		{syscall.EROFS, "the run directory is on a disk that can only be read; make it writable, or choose another by " + r.setting("RunDir")},
		{syscall.EFBIG, "files may not become larger (ulimit -f); raise the limit"},
		{syscall.EMFILE, "no further files may be opened (ulimit -n); raise the limit" + r.orFewerRuns()},
		{syscall.ENFILE, "the machine has too many open files; raise fs.file-max" + r.orFewerRuns()},
		{syscall.EAGAIN, "no further process may be started (limit of pids of the container, or ulimit -u); raise the limit" + r.orFewerRuns()},
		{syscall.ENOMEM, "no memory is left for another process; raise the limit of the container" + r.orFewerRuns()},
	}
}

// orFewerRuns is the end of a remedy for resources that runs use up together.
func (r *Runner) orFewerRuns() string {
	setting := r.setting("MaxConcurrentRuns")
	if setting == "" {
		return "" // There is one run in this container.
	}
	return ", or let fewer runs be live by " + setting
}

// addHint adds a hint to the ending of a run if a resource ran out during the run. It
// replaces the error by the bare errno, because the file that could not be written differs
// each time, and the same failure must give the same message. managerErr is an error that
// the manager itself met during the run.
func (r *Runner) addHint(e jobevent.ProcessExit, s jobevent.Summary, managerErr error) jobevent.ProcessExit {
	for _, short := range r.shortages() {
		if errors.Is(e.Err, short.errno) {
			e.Err, e.Hint = short.errno, short.remedy
			return e
		}
		if errors.Is(managerErr, short.errno) {
			e.Hint = short.remedy
			return e
		}
	}
	for _, short := range r.shortages() {
		if short.reportedIn(e, s) {
			e.Hint = fmt.Sprintf("%q may mean: %s", short.errno.Error(), short.remedy)
			return e
		}
	}
	return e
}

// oomHint returns the hint for a run during which the OOM killer ended processes. It is not
// known whether they belonged to this run.
func (r *Runner) oomHint() string {
	return "during this run the kernel killed processes of this operator because memory ran out (oom_kill); raise the memory limit of the container" + r.orFewerRuns()
}

func (r *Runner) oomKills() uint64 {
	if r.OOMKills == nil {
		return 0
	}
	return r.OOMKills()
}

// reportedIn reports whether a program of the run has reported this shortage, in the words
// of the C library. These words begin with a capital, which is not compared. Shortages
// whose words a role may use for other failures are not looked for.
func (l shortage) reportedIn(e jobevent.ProcessExit, s jobevent.Summary) bool {
	if !slices.Contains([]syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE}, l.errno) {
		return false
	}
	text := l.errno.Error()[1:]
	mentioned := func(f jobevent.TaskFailure) bool { return strings.Contains(f.Message, text) }
	return strings.Contains(e.Output, text) || slices.ContainsFunc(s.Failed, mentioned) || slices.ContainsFunc(s.UnreachableHosts, mentioned)
}
