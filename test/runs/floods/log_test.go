package floods

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	blockTop    = "--------------------------- Ansible Task StdOut -------------------------------"
	runTop      = "------------------------------- Ansible Run -----------------------------------"
	blockBottom = "-------------------------------------------------------------------------------"
)

var (
	logLine   = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\t(DEBUG|INFO|ERROR|DPANIC)\t`)
	blockLine = regexp.MustCompile(`^[a-z0-9-]+/[a-z0-9-]+ \| `)
)

// faults tells what is wrong with the form of a log on the console: a line that is
// neither the logger's nor belongs to a block, or a character that is not shown.
func faults(log string) []string {
	var found []string
	inside := false
	number := 0
	for line := range strings.Lines(log) {
		number++
		text, whole := strings.CutSuffix(line, "\n")
		if fault := faultOf(text, whole, &inside); fault != "" {
			found = append(found, fmt.Sprintf("line %d %s: %q", number, fault, text[:min(len(text), 200)]))
		}
	}
	if inside {
		found = append(found, "the last block has no end")
	}
	return found[:min(len(found), 10)]
}

func faultOf(text string, whole bool, inside *bool) string {
	switch {
	case !whole:
		return "has no end"
	case !utf8.ValidString(text):
		return "is not UTF-8"
	case strings.ContainsFunc(text, func(r rune) bool { return r != '\t' && !unicode.IsGraphic(r) }):
		return "has a character that is not shown"
	case text == blockTop, text == runTop:
		was := *inside
		*inside = true
		if was {
			return "begins a block in a block"
		}
	case text == blockBottom:
		was := *inside
		*inside = false
		if !was {
			return "ends no block"
		}
	case *inside && !blockLine.MatchString(text):
		return "has no prefix"
	case !*inside && !logLine.MatchString(text):
		return "is not the logger's"
	}
	return ""
}

const sound = "2026-11-21T15:28:08.686Z\tINFO\trun\ttask\t{}\n" + blockTop + "\nns/name | TASK [a]\n" + blockBottom + "\n"

var _ = DescribeTable("a log's form", func(log, fault string) {
	if fault == "" {
		Expect(faults(log)).To(BeEmpty())
		return
	}
	Expect(faults(log)).To(ContainElement(ContainSubstring(fault)))
},
	Entry("is sound", sound+sound, ""),
	Entry("has a line of nobody", sound+"forged\n", "not the logger's"),
	Entry("has a line in a block without the CR", strings.Replace(sound, "ns/name | ", "", 1), "no prefix"),
	Entry("has an escape", strings.Replace(sound, "TASK", "\x1b[31mTASK", 1), "not shown"),
	Entry("has a NUL", strings.Replace(sound, "TASK", "\x00", 1), "not shown"),
	Entry("has a change of the writing direction", strings.Replace(sound, "TASK", "\u202e", 1), "not shown"),
	Entry("is not UTF-8", strings.Replace(sound, "TASK", "\xff", 1), "not UTF-8"),
	Entry("has a block in a block", strings.Replace(sound, blockTop, blockTop+"\n"+blockTop, 1), "in a block"),
	Entry("has a block without an end", strings.Replace(sound, blockBottom+"\n", "", 1), "no end"),
	Entry("has a line without an end", strings.TrimSuffix(sound, "\n"), "no end"),
)
