package scratch

import (
	"errors"
	"fmt"
	"strings"
)

// Case reads the file of a case: a sentence that says why the case is there, an empty
// line, a setting "KEY: VALUE" in each line, and files, each after a line "-- NAME --".
// It passes the settings to set, in their order. The sentence is not optional.
func Case(content string, set func(key, value string) error) (about string, files map[string]string, err error) {
	head, rest, _ := strings.Cut("\n"+strings.TrimSuffix(content, "\n"), "\n-- ")
	about, settings, _ := strings.Cut(strings.TrimSpace(head), "\n\n")
	if about == "" {
		return "", nil, errors.New("no sentence says why the case is there")
	}
	for line := range strings.Lines(settings) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if err := set(key, value); err != nil {
			return "", nil, fmt.Errorf("%q: %w", key, err)
		}
	}
	files = map[string]string{}
	for part := range strings.SplitSeq(rest, "\n-- ") {
		name, text, found := strings.Cut(part+"\n", " --\n")
		if !found {
			return "", nil, fmt.Errorf("no file begins with %q", part)
		}
		files[name] = text
	}
	return about, files, nil
}
