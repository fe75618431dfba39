package crlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/ensign-operator/ensign/internal/content"
)

// Printer writes lines of several logs, without control characters.
type Printer struct {
	Out io.Writer

	mu sync.Mutex
}

// print writes lines that belong together.
func (p *Printer) print(lines []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range lines {
		if _, err := fmt.Fprintln(p.Out, content.Visible(line)); err != nil {
			return err
		}
	}
	return nil
}

// Copy prints the object's lines of a log, until it ends. What is cut off at its end, without
// a line feed, is a line too.
func (p *Printer) Copy(object Object, log io.Reader) error {
	filter, reader := NewFilter(object), bufio.NewReader(log)
	for {
		line, err := reader.ReadString('\n')
		if line != "" {
			if err := p.print(filter.Lines(strings.TrimRight(line, "\r\n"))); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
	}
}
