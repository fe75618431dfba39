package ensign_test

import (
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTheExamplesOfTheDocumentCompile finds each block of Go in docs/howto-go.md in the examples. A block is
// whole: it can be pasted into a function.
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
	flush := regexp.MustCompile(`(?m)^\t+`)
	for _, block := range blocks {
		if !strings.Contains(flush.ReplaceAllString(string(compiled), ""), flush.ReplaceAllString(block[1], "")) {
			t.Errorf("no example has the block\n%s", block[1])
		}
		if _, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+block[1]+"}", 0); err != nil {
			t.Errorf("%v in the block\n%s", err, block[1])
		}
	}
}
