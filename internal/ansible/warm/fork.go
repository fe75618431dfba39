package warm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ensign-operator/ensign/internal/process/proctree"
)

const (
	// answerTimeout is how long a process may take to say that a run can begin.
	answerTimeout = 3 * time.Second
	// goAhead lets a run begin. With it go the descriptors of its standard output and error.
	goAhead = 'g'
	// outdatedPrefix begins a refusal after which the process has to be replaced.
	outdatedPrefix = "outdated "
)

// ofOneRun returns the variables that differ from run to run; each fork resolves them again.
// server/ensign_warm/environment.py has the same, and the variables that ansible-runner sets for
// the playbook.
func ofOneRun() []string {
	return []string{"JOB_ID", "KUBECONFIG", "K8S_AUTH_KUBECONFIG", "ANSIBLE_LOCAL_TEMP"}
}

// shared returns the common part of the environments of all runs.
func shared(env []string) []string {
	never := ofOneRun()
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(never, name)
	})
}

// Start starts a run as a fork of the server: cmd is ensign_run.py in the interpreter of New, with
// files as standard output and error. It returns the fork, or why there is none; then nothing of
// the run has begun.
//
// A refusal, "cold REASON", comes before "ready PID", and a fork that is ready does nothing until
// it gets goAhead. The descriptors come with that alone: a reader at the other ends waits for all
// processes that hold them. The server says last how the fork ended, "exit CODE" or "signal
// NUMBER".
func (s *Server) Start(cmd *exec.Cmd) (leader proctree.Leader, why string) {
	leader, why = s.fork(cmd)
	if why != "" {
		s.OnCold(why)
	}
	return leader, why
}

func (s *Server) fork(cmd *exec.Cmd) (leader proctree.Leader, why string) {
	p, why := s.serving()
	if why != "" {
		return proctree.Leader{}, why
	}
	conn, err := p.requestFork(cmd)
	if err != nil {
		return proctree.Leader{}, reasonEnded
	}
	lines := bufio.NewReader(conn)
	fork, why := begin(conn, lines, cmd)
	if fork == nil {
		_ = conn.Close() // A fork that waits ends by that.
		if cause, outdated := strings.CutPrefix(why, outdatedPrefix); outdated {
			p.replace(cause)
			why = cause
		}
		return proctree.Leader{}, why
	}
	return proctree.Leader{PID: fork.Pid, Wait: func() int { return end(conn, lines, fork) }}, ""
}

// requestFork has the process fork for a run, and sends the fork the run's command.
func (p *process) requestFork(cmd *exec.Cmd) (*net.UnixConn, error) {
	conn, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(answerTimeout)
	p.mu.Lock()
	_ = p.control.SetWriteDeadline(deadline)
	_, _, err = p.control.WriteMsgUnix([]byte{orderFork}, syscall.UnixRights(int(theirs.Fd())), nil)
	p.mu.Unlock()
	err = errors.Join(err, theirs.Close(), conn.SetDeadline(deadline))
	if err == nil {
		_, err = conn.Write(request(cmd))
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// request returns the directory, the number of arguments, these, and the environment, each with
// NUL at its end, and before all that their length.
func request(cmd *exec.Cmd) []byte {
	args := cmd.Args[1:]
	fields := slices.Concat([]string{cmd.Dir, strconv.Itoa(len(args))}, args, cmd.Env)
	payload := strings.Join(fields, "\x00") + "\x00"
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

// begin lets the fork begin, and returns it, or why there is none.
func begin(conn *net.UnixConn, lines *bufio.Reader, cmd *exec.Cmd) (fork *os.Process, why string) {
	line, err := lines.ReadString('\n')
	if why := reasonOf(err); why == reasonEnded {
		return nil, outdatedPrefix + why // A server that could not take the connection is of no use either.
	} else if err != nil {
		return nil, why
	}
	word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	if word == "cold" {
		return nil, rest
	}
	pid, err := strconv.Atoi(rest)
	if word != "ready" || err != nil {
		return nil, reasonEnded
	}
	// A handle of this process, so that no other process that gets its number is hit.
	fork, err = os.FindProcess(pid)
	if err != nil {
		return nil, reasonEnded
	}
	rights := syscall.UnixRights(descriptor(cmd.Stdout), descriptor(cmd.Stderr))
	if _, _, err := conn.WriteMsgUnix([]byte{goAhead}, rights, nil); err != nil {
		return nil, reasonOf(err)
	}
	_ = conn.SetDeadline(time.Time{}) // A run may take any time.
	return fork, ""
}

func reasonOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, os.ErrDeadlineExceeded):
		return reasonSilent
	}
	return reasonEnded
}

func descriptor(stream any) int {
	file, _ := stream.(*os.File)
	return int(file.Fd())
}

// end waits for the end of the fork, and returns its exit code or, negative, the signal. If the
// server is gone, nobody knows how far the run has come: it must not go on, and not begin again.
func end(conn *net.UnixConn, lines *bufio.Reader, fork *os.Process) int {
	defer func() { _ = errors.Join(conn.Close(), fork.Release()) }()
	line, err := lines.ReadString('\n')
	if err != nil {
		_ = fork.Kill() // It may have ended.
		return -int(syscall.SIGKILL)
	}
	var code, signal int
	if _, err := fmt.Sscanf(line, "exit %d", &code); err == nil {
		return code
	}
	if _, err := fmt.Sscanf(line, "signal %d", &signal); err != nil {
		_ = fork.Kill()
		return -int(syscall.SIGKILL)
	}
	return -signal
}

// WithoutDetail returns the reason without the name in it, of which there may be any number.
func WithoutDetail(reason string) string {
	for _, word := range []string{"variable", "defect"} {
		if strings.HasPrefix(reason, word+" ") {
			return word
		}
	}
	return reason
}
