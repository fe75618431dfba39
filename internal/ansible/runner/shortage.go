package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

// shortage is something of the machine that has run out, and what to do about it.
type shortage struct {
	errno  syscall.Errno
	remedy string
}

// shortages end by themselves or by somebody's hand; what failed for one is tried
// again like any failed run.
func shortages() []shortage {
	const disk = "; free some, let --artifacts-max-bytes keep less, or choose another disk by --run-dir"
	return []shortage{
		{syscall.ENOSPC, "the disk of the run directory has no space or no inodes left" + disk},
		{syscall.EDQUOT, "the disk quota for the run directory is used up" + disk},
		{syscall.EROFS, "the run directory is on a disk that can only be read; make it writable, or choose another by --run-dir"},
		{syscall.EFBIG, "files may not become larger (ulimit -f); raise the limit"},
		{syscall.EMFILE, "no further files may be opened (ulimit -n); raise the limit, or let fewer runs be live by --max-concurrent-runs"},
		{syscall.ENFILE, "the machine has too many open files; raise fs.file-max, or let fewer runs be live by --max-concurrent-runs"},
		{syscall.EAGAIN, "no further process may be started (limit of pids of the container, or ulimit -u); raise the limit, or let fewer runs be live by --max-concurrent-runs"},
		{syscall.ENOMEM, "no memory is left for another process; raise the limit of the container, or let fewer runs be live by --max-concurrent-runs"},
	}
}

// explain adds to the ending of a run what ran out during it, if something did,
// and says less of where: which file it was that no longer fitted in differs each
// time, and the message of the same failure must not. own is an error that this
// process met while the run was live.
func explain(e jobevent.Ending, s jobevent.Summary, own error) jobevent.Ending {
	for _, lack := range shortages() {
		if errors.Is(e.Err, lack.errno) {
			e.Err, e.Hint = lack.errno, lack.remedy
			return e
		}
		if errors.Is(own, lack.errno) {
			e.Hint = lack.remedy
			return e
		}
	}
	for _, lack := range shortages() {
		if lack.told(e, s) {
			e.Hint = fmt.Sprintf("%q may mean: %s", lack.errno.Error(), lack.remedy)
			return e
		}
	}
	return e
}

// killedHint is for a run during which the kernel ended processes. Whether they were its
// own, nobody tells.
const killedHint = "while this run was live, the kernel ended processes of this operator for want of memory (oom_kill); raise the memory limit of the container, or let fewer runs be live by --max-concurrent-runs"

func (r *Runner) killed() uint64 {
	if r.Killed == nil {
		return 0
	}
	return r.Killed()
}

// told is true when a program of the run has said that it lacks this: in the C
// library's words, which begin with a capital. Of what a role may mean otherwise,
// nothing is concluded.
func (l shortage) told(e jobevent.Ending, s jobevent.Summary) bool {
	if !slices.Contains([]syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE}, l.errno) {
		return false
	}
	text := l.errno.Error()[1:]
	told := func(f jobevent.TaskFailure) bool { return strings.Contains(f.Message, text) }
	return strings.Contains(e.Output, text) || slices.ContainsFunc(s.Failed, told) || slices.ContainsFunc(s.UnreachableHosts, told)
}
