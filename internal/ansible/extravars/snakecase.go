package extravars

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/iancoleman/strcase"
)

var (
	errBlankKey = errors.New("is empty or blank; give it a name")
	errKeyUTF8  = errors.New("is not valid UTF-8; give it another name")
)

// namer copies values with the keys that a role sees.
type namer struct {
	snakeCase bool
	faults    *report
}

func (n namer) value(v any, at *path) any {
	switch v := v.(type) {
	case map[string]any:
		named := make(map[string]any, len(v))
		names := n.names(v, at)
		for _, key := range slices.Sorted(maps.Keys(names)) {
			named[names[key]] = n.value(v[key], at.field(key))
		}
		return named
	case []any:
		named := make([]any, len(v))
		for i, element := range v {
			named[i] = n.value(element, at.element(i))
		}
		return named
	default:
		return v
	}
}

// names maps the keys of m to their names. Of several keys with one name it
// has none: which of them a role would see must not be left to chance.
func (n namer) names(m map[string]any, at *path) map[string]string {
	keysOf := make(map[string][]string, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		name, err := n.name(key)
		if err != nil {
			n.faults.add(at.field(key), "has a key that %v", err)
			continue
		}
		keysOf[name] = append(keysOf[name], key)
	}
	names := make(map[string]string, len(m))
	for _, name := range slices.Sorted(maps.Keys(keysOf)) {
		keys := keysOf[name]
		switch {
		case len(keys) > 1:
			n.faults.addAll(at.fields(keys), "become one name, %s; keep one of them", quote(name))
		case strings.HasPrefix(name, reserved):
			n.faults.add(at.field(keys[0]), "becomes %s, and Ansible keeps names that start with %s for itself; rename the field",
				quote(name), reserved)
		default:
			names[keys[0]] = name
		}
	}
	return names
}

func (n namer) name(key string) (string, error) {
	if !n.snakeCase {
		return key, nil
	}
	return SnakeCase(key)
}

// SnakeCase returns the variable name of a spec's key. Existing roles depend on
// every one of its surprises (enableHTTPS becomes enable_http_s), so the rules
// below are a contract: they are the base image's, one step a function.
//
// An empty or blank key has no name and is an error, as is invalid UTF-8.
func SnakeCase(key string) (string, error) {
	if !utf8.ValidString(key) {
		return "", errKeyUTF8
	}
	name := strings.Trim(spaceDigits(key), " ")
	if name == "" {
		return "", errBlankKey
	}
	capital := isUpper(name[0])
	for _, word := range [...]string{"HTTP", "URL", "IP"} {
		name = setApart(name, word)
	}
	name = strings.ToLower(snakeRuns(name))
	if capital && !startsWithKnownWord(name) {
		name = "_" + name
	}
	return name, nil
}

// spaceDigits puts blanks around digits that stand between two letters when
// the second letter is followed by digits itself: k8s2 reads as k 8 s2, while
// k8s stays one word.
func spaceDigits(key string) string {
	return letterDigitsLetterDigits.ReplaceAllString(key, "$1 $2 $3")
}

var letterDigitsLetterDigits = regexp.MustCompile(`([a-zA-Z])([0-9]+)([a-zA-Z][0-9]+)`)

// setApart puts underscores around the first occurrence of an acronym that
// strict camel case would tear apart. A plural s belongs to the word. At the
// end of the key only the one before it is added, which is why the key URL as
// a whole becomes __url.
func setApart(key, word string) string {
	before, after, found := strings.Cut(key, word)
	if !found {
		return key
	}
	if rest, plural := strings.CutPrefix(after, "s"); plural {
		word, after = word+"S", rest
	}
	switch {
	case after == "":
		return before + "_" + word
	case before == "":
		return word + "_" + after
	default:
		return before + "_" + word + "_" + after
	}
}

// snakeRuns converts each run of letters with strcase and keeps all other
// characters, except that blanks and dashes become underscores. Digits, dots
// and slashes are kept out of strcase's hands, for which they are boundaries.
func snakeRuns(key string) string {
	var out strings.Builder
	wordStart := true
	for key != "" {
		run := letters(key)
		if run == "" {
			c := separator(key[0])
			out.WriteByte(c)
			wordStart = c == '_'
			key = key[1:]
			continue
		}
		out.WriteString(snakeRun(run, wordStart))
		wordStart = false
		key = key[len(run):]
	}
	return out.String()
}

// snakeRun converts one run of letters. Within a word (not wordStart) a
// capitalized run opens a new one: x509Cert becomes x509_cert. At the start of
// a word a lone lower-case letter belongs to what follows: aB becomes ab.
func snakeRun(run string, wordStart bool) string {
	lone := wordStart && len(run) > 1 && isLower(run[0]) && isUpper(run[1])
	switch {
	case lone:
		return run[:1] + snakeRun(run[1:], false)
	case !wordStart && capitalized(run):
		return "_" + strcase.ToSnake(run)
	default:
		return strcase.ToSnake(run)
	}
}

func startsWithKnownWord(name string) bool {
	first, _, _ := strings.Cut(name, "_")
	return first == "http" || first == "url" || first == "ip"
}

func letters(s string) string {
	end := strings.IndexFunc(s, func(r rune) bool {
		return r >= utf8.RuneSelf || !isLower(byte(r)) && !isUpper(byte(r))
	})
	if end < 0 {
		return s
	}
	return s[:end]
}

func separator(c byte) byte {
	if c == ' ' || c == '-' {
		return '_'
	}
	return c
}

func capitalized(run string) bool {
	return len(run) > 1 && isUpper(run[0]) && isLower(run[1])
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
