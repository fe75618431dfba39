package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/process/proctree"
)

const (
	// DefaultGrace is the time between TERM and KILL. The pod of an operator that was written
	// for the ansible-operator base image has 10 s to terminate, and needs some of that to
	// write statuses.
	DefaultGrace = 4 * time.Second
	// strayGrace is the time between TERM and KILL for processes that are left after a run
	// ended by itself.
	strayGrace = time.Second
	// PipeTimeout is how long the manager waits for the end of a pipe after the run's last
	// process has ended. It gives up then: an unknown process has the other end open.
	PipeTimeout = 2 * time.Second
	// maxPipeBytes is the maximum capacity of a pipe, unless the machine's administrator
	// raised it. The pipes of runs have less.
	maxPipeBytes = 1 << 20
)

// Pipes are the pipes of a program that is to be started. Records carries records; the
// standard output and standard error that are not Records carry text.
type Pipes struct {
	records *os.File
	texts   []*os.File
	theirs  []*os.File
}

// Connect gives cmd its pipes. With recordsOnStdout, its standard output carries the
// records; otherwise descriptor 3 does, which no text gets into.
func Connect(cmd *exec.Cmd, recordsOnStdout bool) (*Pipes, error) {
	p := &Pipes{}
	records, err := p.add(&p.records)
	if err != nil {
		return nil, err
	}
	var text *os.File
	stderr, err := p.add(&text)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.texts = append(p.texts, text)
	cmd.Stdout, cmd.Stderr = records, stderr
	if !recordsOnStdout {
		cmd.Stdout, cmd.ExtraFiles = stderr, []*os.File{records}
	}
	return p, nil
}

// add makes a pipe, and returns the end that the program writes to.
func (p *Pipes) add(ours **os.File) (theirs *os.File, err error) {
	*ours, theirs, err = os.Pipe()
	if err == nil {
		p.theirs = append(p.theirs, theirs)
	}
	return theirs, err
}

func (p *Pipes) close() error {
	errs := []error{p.closeTheirs()}
	for _, f := range append([]*os.File{p.records}, p.texts...) {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// closeTheirs closes the program's ends.
func (p *Pipes) closeTheirs() error {
	var errs []error
	for _, f := range p.theirs {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Process is a started program.
type Process struct {
	tree    *proctree.Tree
	records *stream
	texts   []*stream
	// Printed is the end of the text that the program has printed.
	Printed     Tail
	exited      chan int      // the exit code of the first process, as proctree.Leader.Wait returns it
	recordsDone chan error    // the error of read, after the end of the records
	textsDone   chan struct{} // gets one value at the end of each text
	panicStack  []byte        // of a panic in read; written before recordsDone
}

// Start starts the program by launch and reads its pipes in the background: read reads the
// records until their end. It closes each pipe at its end at once: checking that no process
// is left needs another file descriptor, and runs must not wait for descriptors that other
// waiting runs hold.
func (p *Pipes) Start(launch func() (*proctree.Tree, error), read func(io.Reader) error) (*Process, error) {
	tree, err := launch()
	_ = p.closeTheirs() // The program has its own.
	if err != nil {
		p.theirs = nil
		_ = p.close()
		return nil, err
	}
	started := &Process{
		tree: tree, records: &stream{file: p.records},
		exited: make(chan int, 1), recordsDone: make(chan error, 1), textsDone: make(chan struct{}, len(p.texts)),
	}
	go func() { started.exited <- tree.Wait() }()
	for _, file := range p.texts {
		text := &stream{file: file}
		started.texts = append(started.texts, text)
		go func() {
			// An error ends the reading, as the end of the stream does.
			_, _ = io.Copy(&started.Printed, text)
			_ = text.file.Close() // It is at its end.
			started.textsDone <- struct{}{}
		}()
	}
	go func() {
		err := started.read(read)
		started.recordsDone <- errors.Join(err, started.records.file.Close())
	}()
	return started, nil
}

// read calls read with the records. If read panics, which would otherwise end the manager
// and all other runs, the remaining records are skipped. The run goes on to its end, and its
// outcome says what happened.
func (p *Process) read(read func(io.Reader) error) (err error) {
	defer func() {
		if what := recover(); what != nil {
			p.panicStack = debug.Stack()
			err = fmt.Errorf("internal error of the manager at a job event: %v; its log has the stack, please report it", what)
			_, _ = io.Copy(io.Discard, p.records) // The run must not wait for a reader.
		}
	}()
	return read(p.records)
}

// WaitUntilIdle returns true once nothing has come from the program for limit, and false
// when ctx ends.
func (p *Process) WaitUntilIdle(ctx context.Context, limit time.Duration) bool {
	return waitUntilIdle(ctx, limit, p.streams()...)
}

// streams returns all that the program can say something by.
func (p *Process) streams() []*stream { return append([]*stream{p.records}, p.texts...) }

// Wait returns after the run's last process has ended and all its output has been read:
// the exit code of the first process, why ctx ended if it did, and an error of reading.
func (p *Process) Wait(ctx context.Context, grace time.Duration) (code int, cause, err error) {
	select {
	case code = <-p.exited:
	case <-ctx.Done():
		code = p.terminate(grace)
	}
	// ctx may have ended before the run exited, and the code that ended ctx may have ended the run.
	cause = context.Cause(ctx)
	log := logr.FromContextOrDiscard(ctx)
	if strays := p.tree.End(strayGrace); strays.Left > 0 {
		log.Info("cannot end all processes of a run: the kill is forbidden, or the kernel still holds them", "count", strays.Left)
	}
	p.tree.Close()
	err = p.drain()
	if p.panicStack != nil {
		log.Error(err, "could not read all events of a run", "stack", string(p.panicStack))
	}
	return code, cause, err
}

// terminate ends the run's processes and returns the exit code of the first one, or -1 if
// it cannot be ended.
func (p *Process) terminate(grace time.Duration) int {
	if p.tree.End(grace).Left == 0 {
		return <-p.exited
	}
	select {
	case code := <-p.exited:
		return code
	case <-time.After(strayGrace):
		return -1
	}
}

// drain waits until the rest of all pipes has been read.
func (p *Process) drain() error {
	for _, s := range p.streams() {
		s.startDraining()
	}
	err := <-p.recordsDone
	for range p.texts {
		<-p.textsDone
	}
	return err
}
