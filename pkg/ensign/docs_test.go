package ensign_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTheExamplesOfTheDocumentCompile finds each line of Go in docs/howto-go.md in the examples.
func TestTheExamplesOfTheDocumentCompile(t *testing.T) {
	page, err := os.ReadFile("../../docs/howto-go.md")
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 5 {
		t.Errorf("there are %d blocks", len(blocks))
	}
	rest := string(compiled)
	for _, block := range blocks {
		for line := range strings.Lines(block[1]) {
			if line = strings.TrimSpace(line); !strings.Contains(rest, line) {
				t.Errorf("no example has the line\n%s", line)
			}
		}
	}
}
