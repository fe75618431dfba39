package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/internal/jobevent"
)

const (
	decodePart = "Job events"
	// Goals of decoding.
	leastRate    = 100.0       // MB/s on one core
	mostHeap     = 2.0         // MiB for one long line
	longLine     = 100_000_000 // bytes
	decodingTime = "0.5s"      // of one benchmark's measurement
)

// measureDecoding runs the benchmarks of package jobevent on one core, and
// decodes lines of 100 MB here.
func measureDecoding(ctx context.Context, b *bench) ([]report.Row, error) {
	b.say("decoding job events on one core; about 20 s")
	output, err := goBenchmark(ctx, b, "BenchmarkDecode", "./internal/jobevent")
	if err != nil {
		return nil, err
	}
	rates, err := parseRates(output)
	if err != nil {
		return nil, err
	}
	var rows []report.Row
	for _, r := range rates {
		row := r.samples.Row("MB/s")
		row.Part, row.Name, row.Goal = decodePart, "decode "+r.name, report.AtLeast(leastRate)
		rows = append(rows, row)
	}
	b.say("decoding lines of 100 MB; about 5 s")
	for _, line := range longLines() {
		row, err := line.measure(b.settings.repeats)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// goBenchmark runs a Go benchmark on one core, garbage collection included, and
// gives what it printed.
func goBenchmark(ctx context.Context, b *bench, name, pkg string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^"+name+"$", //nolint:gosec // Its arguments are constants and a checked number.
		"-cpu", "1", "-count", strconv.Itoa(b.settings.repeats), "-benchtime", decodingTime, pkg)
	cmd.Dir = b.root
	cmd.Env = os.Environ()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	output, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("run %s: %w; it printed:\n%s", name, err, output)
	}
	return string(output), nil
}

// rate is one benchmark's throughput, in MB/s.
type rate struct {
	name    string
	samples report.Samples
}

// parseRates reads the MB/s of sub-benchmarks from what `go test -bench` prints,
// in the order in which they first appear.
func parseRates(output string) ([]rate, error) {
	var rates []rate
	at := map[string]int{}
	lines := bufio.NewScanner(strings.NewReader(output))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		_, name, _ := strings.Cut(fields[0], "/")
		name = strings.ReplaceAll(name, "_", " ")
		for i, unit := range fields {
			if unit != "MB/s" {
				continue
			}
			value, err := strconv.ParseFloat(fields[i-1], 64)
			if err != nil {
				return nil, fmt.Errorf("read the rate of %q: %w", fields[0], err)
			}
			if _, seen := at[name]; !seen {
				at[name] = len(rates)
				rates = append(rates, rate{name: name})
			}
			rates[at[name]].samples = append(rates[at[name]].samples, value)
		}
	}
	if len(rates) == 0 {
		return nil, fmt.Errorf("no benchmark tells its MB/s in:\n%s", output)
	}
	return rates, lines.Err()
}

// line is one long line of a run's output.
type line struct {
	name             string
	start, unit, end string
	size             int // about, in bytes
	// wanted says that what came out of it is not nothing.
	wanted func(jobevent.Event, string) bool
}

func longLines() []line {
	return []line{{
		name:  "heap for a job event of 100 MB",
		start: `{"event":"runner_on_failed","job_id":` + strconv.Itoa(benchNonce) + `,"event_data":{"host":"localhost","res":{"msg":"`,
		unit:  `output of a task\r\n\u001b[0m `,
		end:   `"}}}`,
		size:  longLine,
		wanted: func(e jobevent.Event, _ string) bool {
			return e.Kind == jobevent.HostFailed && e.Host == "localhost" && len(e.Result) > 0
		},
	}, {
		name:   "heap for a line of text of 100 MB",
		unit:   "output past Ansible ",
		size:   longLine,
		wanted: func(_ jobevent.Event, text string) bool { return text != "" },
	}}
}

// benchNonce is the job_id of the events made here.
const benchNonce = 1<<62 + 1

// reader streams the line, which is never whole in memory. Making it is not part
// of the measurement.
func (l line) reader() io.Reader {
	chunk := strings.Repeat(l.unit, 1+(64<<10)/len(l.unit))
	readers := []io.Reader{strings.NewReader(l.start)}
	for size := 0; size < l.size; size += len(chunk) {
		readers = append(readers, strings.NewReader(chunk))
	}
	return io.MultiReader(append(readers, strings.NewReader(l.end))...)
}

// measure counts all that is ever allocated for the line, so that the heap holds
// less, whenever the garbage collector comes.
func (l line) measure(repeats int) (report.Row, error) {
	var samples report.Samples
	for range repeats {
		var event jobevent.Event
		var text string
		stream := l.reader()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := jobevent.Decode(stream, benchNonce, jobevent.Handler{
			Event:  func(e jobevent.Event) { event = e },
			Output: func(line string) { text = line },
		})
		runtime.ReadMemStats(&after)
		if err != nil || !l.wanted(event, text) {
			return report.Row{}, fmt.Errorf("%s: decoding gave event %q and %d bytes of text (error %w)", l.name, event.Kind, len(text), err)
		}
		samples = append(samples, float64(after.TotalAlloc-before.TotalAlloc)/(1<<20))
	}
	row := samples.Row("MiB")
	row.Part, row.Name, row.Goal = decodePart, l.name, report.AtMost(mostHeap)
	row.Note = "all that was ever allocated for it; the heap holds less"
	return row, nil
}
