package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/hack/bench/sides"
)

// plotTitle stands above the plot, of so many charts.
const (
	plotTitle = "Ensign: plain ansible-runner, cold and warm runs"
	plotted   = 4
)

// measureWarm compares plain ansible-runner, cold runs and warm ones.
func measureWarm(ctx context.Context, b *bench) (_ []report.Row, err error) {
	b.warm, err = sides.Measure(ctx, sides.Options{Root: b.root, Dir: b.dir, Rounds: b.settings.rounds, Full: b.settings.full, Say: b.say})
	return b.warm.Rows, err
}

// draw writes the plot and the table, where they are asked for and there is something to
// be shown: all of it, or nothing.
func (s settings) draw(machine string, f sides.Figures) error {
	if len(f.Charts) < plotted {
		return nil
	}
	r := report.Report{Machine: machine, Rows: f.Rows, Charts: f.Charts}
	var errs []error
	if s.plot != "" {
		var text bytes.Buffer
		errs = append(errs, r.SVG(&text, plotTitle), replace(s.plot, text.Bytes()))
	}
	if s.table != "" {
		var text bytes.Buffer
		errs = append(errs, r.Markdown(&text), splice(s.table, text.String()))
	}
	return errors.Join(errs...)
}

func splice(file, text string) error {
	document, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	changed, err := report.Splice(string(document), text)
	if err != nil {
		return fmt.Errorf("write the figures into %q: %w", file, err)
	}
	return replace(file, []byte(changed))
}

func replace(file string, content []byte) error {
	if err := os.WriteFile(file, content, 0o644); err != nil { //nolint:gosec // Documents that anybody may see.
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}
