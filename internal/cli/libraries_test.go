package cli_test

import (
	"log"      //nolint:depguard // Whose lines are led to logr.
	"log/slog" //nolint:depguard // See above.
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/ensign-operator/ensign/internal/cli"
)

func TestTheStandardLoggerWritesLinesOfTheLogForDevelopers(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(os.Stderr)
	})
	for verbosity, lines := range map[int]int{0: 0, 1: 1} {
		var written []string
		cli.SetLibraryLog(funcr.New(func(_, line string) { written = append(written, line) }, funcr.Options{Verbosity: verbosity}))
		log.Print("warning: destination for a.b is a table")
		if len(written) != lines || lines > 0 && !strings.Contains(written[0], "destination for a.b is a table") {
			t.Errorf("at verbosity %d: %q", verbosity, written)
		}
	}
}
