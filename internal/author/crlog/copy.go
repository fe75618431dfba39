package crlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/ensign-operator/ensign/internal/sanitize"
)

// Printer writes lines of several logs, without control characters.
type Printer struct {
	Out io.Writer

	mu      sync.Mutex
	printed bool
}

// Printed reports whether there was a line about the object.
func (p *Printer) Printed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.printed
}

// ErrNoRecords is returned for a log that has lines, and no record of the formats console and json.
var ErrNoRecords = errors.New("this is not a log of a manager with --log-format console, which is the default in pods, or json")

// print writes a line, which is sanitized.
func (p *Printer) print(line string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printed = true
	_, err := fmt.Fprintln(p.Out, line)
	return err
}

// Copy prints the object's lines of a log, until it ends. A last line without a line
// feed counts too.
func (p *Printer) Copy(object Object, log io.Reader) error {
	filter, reader := NewFilter(object), bufio.NewReader(log)
	for empty := true; ; {
		line, err := reader.ReadString('\n')
		// A log that a terminal or another program recorded may have colours.
		if line = sanitize.Text(strings.TrimRight(line, "\r\n")); line != "" {
			empty = false
			if filter.Keeps(line) {
				if err := p.print(line); err != nil {
					return err
				}
			}
		}
		switch {
		case errors.Is(err, io.EOF) && !empty && !filter.records:
			return ErrNoRecords
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the log: %w", err)
		}
	}
}
