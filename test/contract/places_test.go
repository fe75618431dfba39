package contract

import (
	_ "embed"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

//go:embed places.tsv
var index string

// shown has a place, "§3 order", for each that a row names.
var shown = map[string]bool{}

// row is a spec that shows what the contract says at a place, "§3 order", or at
// several, joined by ", §". Its title begins with them.
func row(places, says string, args ...any) {
	GinkgoHelper()
	It(title(places, says), args...)
}

// entry is row for a table.
func entry(places, says string, args ...any) TableEntry {
	GinkgoHelper()
	return Entry(title(places, says), args...)
}

func title(places, says string) string {
	for place := range strings.SplitSeq(places, ", §") {
		shown["§"+strings.TrimPrefix(place, "§")] = true
	}
	return places + ": " + says
}

// faultsOf compares the index with the places that have a row. Without the long ones
// only those count that are marked fast. Open places have none: they are not there yet.
// Nor have those of another test: the field names its file and, after a colon, a title or a function.
func faultsOf(index string, shown map[string]bool, long bool) []string {
	var faults []string
	known := map[string]bool{}
	for line := range strings.Lines(index) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 || slices.Contains(fields, "") {
			faults = append(faults, "not a line of four fields: "+line)
			continue
		}
		place := "§" + fields[0] + " " + fields[1]
		if known[place] {
			faults = append(faults, "twice in the index: "+place)
		}
		known[place] = true
		file, title, elsewhere := strings.Cut(fields[2], ":")
		switch {
		case fields[2] == "fast" || fields[2] == "long":
			if !shown[place] && (long || fields[2] == "fast") {
				faults = append(faults, "without a row: "+place+": "+fields[3])
			}
		case shown[place]:
			faults = append(faults, "has a row, but is open, or of another suite: "+place)
		case elsewhere:
			text, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(text), `"`+title+`"`) && !strings.Contains(string(text), "func "+title+"(") {
				faults = append(faults, "not there: "+fields[2])
			}
		case fields[2] != "open":
			faults = append(faults, "neither fast, long nor open: "+line)
		}
	}
	for place := range shown {
		if !known[place] {
			faults = append(faults, "not in the index: "+place)
		}
	}
	slices.Sort(faults)
	return faults
}

// sectionHeading is a heading of a reference page that ends with its section: (§3).
var sectionHeading = regexp.MustCompile(`(?m)^#+ .*\(§(\d+)\)$`)

// withoutHeading returns the numbered sections of the index that no heading of the
// pages names, and the sections of headings that the index does not have.
func withoutHeading(index, pages string) []string {
	indexed, written := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(index) {
		if section, _, _ := strings.Cut(line, "\t"); strings.Trim(section, "0123456789") == "" {
			indexed[section] = true
		}
	}
	for _, heading := range sectionHeading.FindAllStringSubmatch(pages, -1) {
		written[heading[1]] = true
	}
	var faults []string
	for section := range indexed {
		if !written[section] {
			faults = append(faults, "no heading of docs/reference-*.md: §"+section)
		}
	}
	for section := range written {
		if !indexed[section] {
			faults = append(faults, "no place in the index: §"+section)
		}
	}
	slices.Sort(faults)
	return faults
}

var _ = Describe("the index of the contract", func() {
	It("has each of its sections in the reference, and no other", func() {
		files, err := filepath.Glob("../../docs/reference-*.md")
		Expect(err).NotTo(HaveOccurred())
		var pages strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			pages.Write(text)
		}
		Expect(withoutHeading(index, pages.String())).To(BeEmpty())
		Expect(withoutHeading("1\ta\n2\tb\noperators\tc\n", "# A (§1)\n\nText (§2)\n## C (§3)\n")).To(
			HaveExactElements("no heading of docs/reference-*.md: §2", "no place in the index: §3"))
	})

	It("has a row for each place, and each row its place", func() {
		Expect(faultsOf(index, shown, withLong)).To(BeEmpty())
	})

	It("would show what is missing", func() {
		const text = "1\ta\tfast\tx\n1\tb\tlong\ty\n1\tc\tnow\tz\n1\ta\tfast\tx\n1\te\tdoc.go:none\tu\n"
		Expect(faultsOf(text, map[string]bool{"§1 a": true, "§2 d": true}, true)).To(HaveExactElements(
			HavePrefix("neither fast"), "not in the index: §2 d", "not there: doc.go:none", "twice in the index: §1 a", "without a row: §1 b: y"))
		Expect(faultsOf("1\tb\tlong\ty\n1\ta\tfast\tx\n", nil, false)).To(HaveExactElements("without a row: §1 a: x"))
	})
})
