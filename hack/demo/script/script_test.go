package script

import (
	"bytes"
	"strings"
	"testing"
)

func TestCommandCanBeTypedAgain(t *testing.T) {
	var out bytes.Buffer
	New(&out).Command([]string{"patch", "mysqlcluster", "-p", `{"spec":{"note":"it's"}}`, ""})
	const want = `  $ kubectl patch mysqlcluster -p '{"spec":{"note":"it'\''s"}}' ''` + "\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestTitleWrapsItsReason(t *testing.T) {
	var out bytes.Buffer
	New(&out).Title(2, 9, "Break it", strings.Repeat("because of this\n\t\t", 20))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if !strings.Contains(lines[0], "2/9  Break it") {
		t.Errorf("got title %q", lines[0])
	}
	if len(lines) < 3 {
		t.Errorf("got %d lines, want the reason on several", len(lines))
	}
	for _, line := range lines[1:] {
		if len(line) > 92 {
			t.Errorf("line of %d characters: %q", len(line), line)
		}
	}
}
