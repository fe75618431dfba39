package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// How much of a log an error quotes.
const (
	quotedBytes = 4096
	quotedLines = 8
)

// Child is one started process.
type Child struct {
	name    string
	log     string
	logFrom int64 // Where this child's output begins: logs are appended to.
	cmd     *exec.Cmd
	done    chan struct{}
}

// Name is the base name of the program.
func (c *Child) Name() string { return c.name }

// PID is the process id, which stays valid until Done is closed.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Done is closed when the process has ended and has been reaped.
func (c *Child) Done() <-chan struct{} { return c.done }

// ExitCode is the program's, or -1 when a signal ended it. It is of use once
// Done is closed.
func (c *Child) ExitCode() int { return c.cmd.ProcessState.ExitCode() }

// Quote returns the end of what the child printed, ready to stand in an error.
func (c *Child) Quote() string {
	lines := c.lastLines()
	if len(lines) == 0 {
		return fmt.Sprintf("it printed nothing (log %s)", c.log)
	}
	return fmt.Sprintf("the end of its log %s:\n  %s", c.log, strings.Join(lines, "\n  "))
}

func (c *Child) exitError(err error) error {
	if err == nil {
		return fmt.Errorf("%s ended although nobody asked it to; %s", c.name, c.Quote())
	}
	return fmt.Errorf("%s ended: %w; %s", c.name, err, c.Quote())
}

func (c *Child) lastLines() []string {
	file, err := os.Open(c.log)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	from := max(c.logFrom, info.Size()-quotedBytes)
	tail, err := io.ReadAll(io.NewSectionReader(file, from, info.Size()-from))
	if err != nil {
		return nil
	}
	text := strings.TrimSpace(string(tail))
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-quotedLines):]
}

// stop ends the process and waits until it is gone.
func (c *Child) stop(grace time.Duration) error {
	select {
	case <-c.done:
		return nil
	default:
	}
	if err := c.signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("end %s: %w", c.name, err)
	}
	select {
	case <-c.done:
		return nil
	case <-time.After(grace):
	}
	if err := c.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", c.name, err)
	}
	<-c.done
	return nil
}

// signal reaches the child's whole process group.
func (c *Child) signal(sig syscall.Signal) error {
	err := syscall.Kill(-c.cmd.Process.Pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
