// Package peak measures how much memory a process takes to read an input.
package peak

import (
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// variable says to a child process which input it reads.
const variable = "ENSIGN_PEAK_INPUT"

// Input is one that a tenant can write.
type Input struct {
	// Name is the row of docs/security.md, and what is special about this input.
	Name string
	// MiB is the most memory that docs/security.md names for the row.
	MiB int
	// Refused is true for an input beyond the limit.
	Refused bool
	// Make returns what reads the input, and its error. The memory for making it is not measured.
	Make func() (read func() error)
}

// Measure reads each input in a process of its own, which is this test again, and fails if that takes more
// memory than the input may, or accepts what it should refuse.
func Measure(t *testing.T, inputs []Input) {
	t.Helper()
	wanted := os.Getenv(variable)
	for _, input := range inputs {
		if input.Name == wanted {
			read := input.Make()
			debug.FreeOSMemory()
			if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // The peak begins here.
				t.Fatal(err)
			}
			before := memory(t, "VmRSS")
			if err := read(); (err != nil) != input.Refused {
				t.Errorf("refused must be %v: %v", input.Refused, err)
			}
			t.Logf("peak: %d KiB", memory(t, "VmHWM")-before)
		}
		if wanted != "" {
			continue
		}
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v") //nolint:gosec // This program.
		child.Env = append(os.Environ(), variable+"="+input.Name)
		out, err := child.CombinedOutput()
		found := regexp.MustCompile(`peak: (-?\d+) KiB`).FindSubmatch(out)
		if err != nil || found == nil {
			t.Errorf("%s: %v\n%s", input.Name, err, out)
			continue
		}
		took, _ := strconv.Atoi(string(found[1]))
		t.Logf("%-60s %4d MiB", input.Name, took>>10)
		if took>>10 > input.MiB {
			t.Errorf("%s: %d MiB, and docs/security.md says %d", input.Name, took>>10, input.MiB)
		}
	}
}

// memory returns a value of this process in KiB.
func memory(t *testing.T, name string) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), name+":")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("no %s in %s", name, status)
	}
	kib, _ := strconv.Atoi(fields[0])
	return kib
}
