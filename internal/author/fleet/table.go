package fleet

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/liggitt/tabwriter"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Table prints rows for people. A Table that prints again, for changes, prints the same
// columns without their names.
type Table struct {
	wide    bool
	started bool
	out     *tabwriter.Writer
}

// NewTable returns a table with lines of at most width characters; 0 means no limit. A wide table
// has two more columns, and whole messages.
func NewTable(out io.Writer, width int, wide bool) *Table {
	if wide {
		width = 0
	}
	return &Table{wide: wide, out: tabwriter.NewWriter(&lines{out: out, width: width}, 0, 4, 2, ' ', tabwriter.RememberWidths)}
}

// Print prints the rows, with times as they are at now.
func (t *Table) Print(rows []Row, now time.Time) error {
	if !t.started {
		t.started = true
		t.line("KIND", "NAMESPACE", "NAME", "READY", "OUTCOME", "REASON", "GENERATION", "LAST", "NEXT", "SLOWED", "PERIOD", "VERSION", "MESSAGE")
	}
	for _, r := range rows {
		t.line(r.Kind, cmp.Or(r.Namespace, "-"), r.Name, cmp.Or(r.Ready, "-"), string(r.Outcome), cmp.Or(r.Reason, "-"), r.generations(),
			age(r.LastRun, now), pause(r.NextRun, now), r.slowed(), cmp.Or(r.Period, "-"), cmp.Or(oneLine(r.version()), "-"), oneLine(r.Message))
	}
	return t.out.Flush()
}

func (t *Table) line(cells ...string) {
	if message := len(cells) - 1; !t.wide {
		cells = append(cells[:message-2:message-2], cells[message])
	}
	fmt.Fprintln(t.out, strings.Join(cells, "\t"))
}

// generations returns the generation, and before it the one that the status is about if
// that is another.
func (r Row) generations() string {
	switch {
	case r.Generation == 0: // The kind has none.
		return "-"
	case r.Generation == r.ObservedGeneration:
		return strconv.FormatInt(r.Generation, 10)
	}
	return fmt.Sprintf("%d/%d", max(r.ObservedGeneration, 0), r.Generation) // A CRD's default is -1.
}

func (r Row) slowed() string {
	if r.SlowedDown == "" {
		return "-"
	}
	return "yes"
}

func age(t *time.Time, now time.Time) string {
	if t == nil {
		return "-"
	}
	return duration.HumanDuration(max(0, now.Sub(*t))) // The manager's clock may be ahead.
}

func pause(t *time.Time, now time.Time) string {
	switch {
	case t == nil:
		return "-"
	case !t.After(now):
		return "due"
	}
	return duration.HumanDuration(t.Sub(now))
}

// oneLine returns the text on one line, and without tabs, which separate columns.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// lines cuts the lines that are written to it.
type lines struct {
	out   io.Writer
	width int
	rest  []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, after, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		if _, err := fmt.Fprintln(l.out, strings.TrimRight(cut(string(line), l.width), " ")); err != nil {
			return 0, err
		}
		l.rest = after
	}
}

// cut returns at most width characters of the line, the last of which shows the cut.
func cut(line string, width int) string {
	if width <= 0 || utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width-1]) + "…"
}
