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

// namer copies values and replaces their keys by the names that a role sees.
type namer struct {
	snakeCase bool
	problems  *problemList
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

// names maps the keys of m to their names. It leaves out keys that become the same
// name, because which of them a role would see must not depend on chance.
func (n namer) names(m map[string]any, at *path) map[string]string {
	keysOf := make(map[string][]string, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		name, err := n.name(key)
		if err != nil {
			n.problems.add(at.field(key), "has a key that %v", err)
			continue
		}
		keysOf[name] = append(keysOf[name], key)
	}
	names := make(map[string]string, len(m))
	for _, name := range slices.Sorted(maps.Keys(keysOf)) {
		keys := keysOf[name]
		switch {
		case len(keys) > 1:
			n.problems.addAll(at.fields(keys), "become one name, %s; keep one of them", quote(name))
		case strings.HasPrefix(name, reservedPrefix):
			n.problems.add(at.field(keys[0]), "becomes %s, and Ansible keeps names that start with %s for itself; rename the field",
				quote(name), reservedPrefix)
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

// SnakeCase returns the variable name for a key of the spec. The rules are those of
// the ansible-operator base image, surprises included (enableHTTPS becomes
// enable_http_s), because existing roles depend on them. Do not change them.
//
// The error says that the key is empty, blank or not valid UTF-8.
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
		name = separateAcronym(name, word)
	}
	name = strings.ToLower(snakeWords(name))
	if capital && !startsWithAcronym(name) {
		name = "_" + name
	}
	return name, nil
}

// spaceDigits puts blanks around digits between two letters if digits follow the
// second letter too: k8s2 becomes "k 8 s2", and k8s stays as it is.
func spaceDigits(key string) string {
	return letterDigitsLetterDigits.ReplaceAllString(key, "$1 $2 $3")
}

var letterDigitsLetterDigits = regexp.MustCompile(`([a-zA-Z])([0-9]+)([a-zA-Z][0-9]+)`)

// separateAcronym puts underscores around the first occurrence of an acronym, which
// strcase would otherwise split. A plural s belongs to the acronym. At the end of the
// key it adds only the underscore before the acronym, which is why the key URL
// becomes __url.
func separateAcronym(key, acronym string) string {
	before, after, found := strings.Cut(key, acronym)
	if !found {
		return key
	}
	if rest, plural := strings.CutPrefix(after, "s"); plural {
		acronym, after = acronym+"S", rest
	}
	switch {
	case after == "":
		return before + "_" + acronym
	case before == "":
		return acronym + "_" + after
	default:
		return before + "_" + acronym + "_" + after
	}
}

// snakeWords converts each sequence of letters with strcase. Blanks and dashes become
// underscores, and all other characters stay. strcase does not get digits, dots and
// slashes, because it would split words there.
func snakeWords(key string) string {
	var out strings.Builder
	wordStart := true
	for key != "" {
		letters := leadingLetters(key)
		if letters == "" {
			c := replaceSeparator(key[0])
			out.WriteByte(c)
			wordStart = c == '_'
			key = key[1:]
			continue
		}
		out.WriteString(snakeLetters(letters, wordStart))
		wordStart = false
		key = key[len(letters):]
	}
	return out.String()
}

// snakeLetters converts one sequence of letters. Within a word (wordStart is false) a
// capitalized sequence begins a new word: x509Cert becomes x509_cert. At the start of
// a word, a single lower-case letter is joined with the following letters: aB becomes
// ab.
func snakeLetters(letters string, wordStart bool) string {
	lone := wordStart && len(letters) > 1 && isLower(letters[0]) && isUpper(letters[1])
	switch {
	case lone:
		return letters[:1] + snakeLetters(letters[1:], false)
	case !wordStart && isCapitalized(letters):
		return "_" + strcase.ToSnake(letters)
	default:
		return strcase.ToSnake(letters)
	}
}

func startsWithAcronym(name string) bool {
	first, _, _ := strings.Cut(name, "_")
	return first == "http" || first == "url" || first == "ip"
}

// leadingLetters returns the ASCII letters at the beginning of s.
func leadingLetters(s string) string {
	end := strings.IndexFunc(s, func(r rune) bool {
		return r >= utf8.RuneSelf || !isLower(byte(r)) && !isUpper(byte(r))
	})
	if end < 0 {
		return s
	}
	return s[:end]
}

func replaceSeparator(c byte) byte {
	if c == ' ' || c == '-' {
		return '_'
	}
	return c
}

func isCapitalized(word string) bool {
	return len(word) > 1 && isUpper(word[0]) && isLower(word[1])
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
