// Chart-exec carries out one of Helm's actions for the manager, which starts it for each
// run: see internal/chart/order.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/ensign-operator/ensign/internal/chart/action"
	"github.com/ensign-operator/ensign/internal/chart/order"
)

// maxMemory bounds what a chart may make this process hold, in bytes. A template's list of
// 2,000,000,000 numbers would otherwise take all memory of the manager's container.
const maxMemory = 1 << 30

func main() {
	const usage = 2
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(usage)
	}
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chart-exec ORDER; the manager starts this program for each run of a chart")
		os.Exit(usage)
	}
	text, err := os.ReadFile(os.Args[1]) //nolint:gosec // Naming the file is what the argument is for.
	var o order.Order
	if err == nil {
		o, err = order.Decode(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(usage)
	}
	os.Exit(execute(o))
}

// prepare bounds the process, and lets the manager know how it crashes.
func prepare() error {
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: maxMemory, Max: maxMemory}); err != nil {
		return fmt.Errorf("limit the memory: %w", err)
	}
	crash, err := os.Create(filepath.Join(os.TempDir(), order.CrashFile))
	if err != nil {
		return fmt.Errorf("prepare for a crash: %w", err)
	}
	return errors.Join(debug.SetCrashOutput(crash, debug.CrashOptions{}), crash.Close())
}

// execute carries out the order and returns the exit code. A record that cannot be written
// has no reader: the manager is gone.
func execute(o order.Order) int {
	records := os.NewFile(order.Descriptor, "records")
	err := action.Run(context.Background(), o, os.Getenv("KUBECONFIG"), os.Stderr, func(step string) {
		_ = order.Record{Nonce: o.Nonce, Working: step}.Write(records)
	})
	last := order.Record{Nonce: o.Nonce, Done: true}
	if err != nil {
		last.Error = err.Error()
	}
	if err := last.Write(records); err != nil || last.Error != "" {
		return 1
	}
	return 0
}
