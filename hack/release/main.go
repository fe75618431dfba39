// Command release does the parts of a release that need no registry: it is called by release.sh.
//
//	release notes CHANGELOG.md SECTION   prints the section of the changelog
//	release sbom NAME VERSION FILE       prints an SBOM of a tar (CycloneDX)
//	release check DIR VERSION            reports what of a release does not fit together
//	release table DIR                    prints the files with their sizes, and the images
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	what := strings.Join(append([]string{}, args[:min(1, len(args))]...), "")
	switch {
	case what == "notes" && len(args) == 3:
		text, err := os.ReadFile(args[1])
		if err != nil {
			return err
		}
		notes, err := notesOf(string(text), args[2])
		if err != nil {
			return fmt.Errorf("%s: %w", args[1], err)
		}
		_, err = io.WriteString(out, notes)
		return err
	case what == "sbom" && len(args) == 4:
		file, err := os.Open(args[3])
		if err != nil {
			return err
		}
		defer file.Close()
		return writeSBOM(out, args[1], args[2], bufio.NewReader(file))
	case what == "check" && len(args) == 3:
		return check(args[1], args[2])
	case what == "table" && len(args) == 2:
		return table(args[1], out)
	default:
		return fmt.Errorf("%q: see the head of hack/release/main.go", args)
	}
}

// notesOf returns the section of a changelog: the lines below "## SECTION", or "## SECTION (date)",
// until the next heading of that level.
func notesOf(text, section string) (string, error) {
	var notes strings.Builder
	found := false
	for line := range strings.Lines(text) {
		if heading, is := strings.CutPrefix(strings.TrimSpace(line), "## "); is {
			if found {
				break
			}
			name, _, _ := strings.Cut(heading, " ")
			found = name == section
			continue
		}
		if found {
			notes.WriteString(line)
		}
	}
	if strings.TrimSpace(notes.String()) == "" {
		return "", fmt.Errorf("there is no section \"## %s\" with text in it: write what users meet in this version", section)
	}
	return strings.TrimSpace(notes.String()) + "\n", nil
}

// table prints the contents of the release.
func table(dir string, out io.Writer) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%12s  %s\n", size(info.Size()), entry.Name())
	}
	images, err := os.ReadFile(filepath.Join(dir, "images.txt"))
	if err != nil {
		return nil //nolint:nilerr // A few steps alone make none.
	}
	_, err = out.Write(images)
	return err
}

// size writes a number of bytes for people.
func size(bytes int64) string {
	switch {
	case bytes >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	case bytes >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	default:
		return fmt.Sprintf("%d B", bytes)
	}
}
