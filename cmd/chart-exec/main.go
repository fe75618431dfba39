// Chart-exec carries out one of Helm's actions for the manager, which starts it for each
// run: see internal/chart/order.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/ensign-operator/ensign/internal/chart/action"
	"github.com/ensign-operator/ensign/internal/chart/order"
)

func main() {
	const usage = 2
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
	if o.Action == order.Render {
		if err := action.Render(context.Background(), o, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(execute(o))
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
