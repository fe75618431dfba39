// Chart-exec carries out one of Helm's actions for the manager, which starts it for each
// run: see internal/chart/order.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ensign-operator/ensign/internal/chart/action"
	"github.com/ensign-operator/ensign/internal/chart/fetch"
	"github.com/ensign-operator/ensign/internal/chart/order"
)

// maxMemory bounds the memory of this process in bytes, whatever the chart does. A template's list
// of 2,000,000,000 numbers would otherwise take all memory of the manager's container.
const maxMemory = 1 << 30

// maxFetched bounds the memory for the answers of servers: Helm reads an answer whole, and parses
// an index of 20 MB into some hundred MB.
const maxFetched = 2 << 30

func main() {
	const usage = 2
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chart-exec ORDER; the manager starts this program for each run of a chart")
		os.Exit(usage)
	}
	text, err := os.ReadFile(os.Args[1])
	var o order.Order
	if err == nil {
		o, err = order.Decode(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(usage)
	}
	switch o.Action { // An action that changes nothing has no records.
	case order.Render:
		answer(action.Render(context.Background(), o, os.Stdout))
	case order.Evaluate:
		answer(action.Evaluate(o, os.Stdout))
	case order.Preview:
		answer(errors.Join(limitMemory(maxMemory), action.Preview(context.Background(), o, os.Getenv("KUBECONFIG"), os.Stdout)))
	case order.FetchChart:
		answer(errors.Join(limitMemory(maxFetched), fetch.Chart(o.Fetch, os.Stdout)))
	}
	logs, err := prepare()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(usage)
	}
	os.Exit(execute(o, logs))
}

// answer ends the program after its output, or with the error.
func answer(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// prepare bounds the process, and returns its former standard error, for logs. From here on
// standard error is a file, where the manager finds the runtime's output at a crash:
// debug.SetCrashOutput leaves out the line that names a fatal error.
func prepare() (logs *os.File, err error) {
	if err := limitMemory(maxMemory); err != nil {
		return nil, err
	}
	crash, err := os.Create(filepath.Join(os.TempDir(), order.CrashFile)) //nolint:gosec // TMPDIR is the run's own.
	if err != nil {
		return nil, fmt.Errorf("prepare for a crash: %w", err)
	}
	before, err := syscall.Dup(syscall.Stderr)
	if err == nil {
		syscall.CloseOnExec(before)
		err = syscall.Dup3(int(crash.Fd()), syscall.Stderr, 0)
	}
	return os.NewFile(uintptr(before), "logs"), errors.Join(err, crash.Close())
}

func limitMemory(bytes uint64) error {
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: bytes, Max: bytes}); err != nil {
		return fmt.Errorf("limit the memory: %w", err)
	}
	return nil
}

// execute carries out the order and returns the exit code. A record that cannot be written
// has no reader: the manager is gone.
func execute(o order.Order, logs io.Writer) int {
	records := os.NewFile(order.Descriptor, "records")
	err := action.Run(context.Background(), o, os.Getenv("KUBECONFIG"), logs, func(record order.Record) {
		record.Nonce = o.Nonce
		_ = record.Write(records)
	})
	last := order.Record{Nonce: o.Nonce, Done: true}
	if refused, ok := errors.AsType[*action.RefusedError](err); ok {
		last.Refused = refused.Of
	}
	if err != nil {
		last.Error = err.Error()
	}
	if err := last.Write(records); err != nil || last.Error != "" {
		return 1
	}
	return 0
}
