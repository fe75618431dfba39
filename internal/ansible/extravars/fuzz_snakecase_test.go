package extravars

import (
	"bufio"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// FuzzSnakeCase compares SnakeCase with a second implementation of the rules, and
// checks how names of two keys of one map go together.
func FuzzSnakeCase(f *testing.F) {
	for i, key := range recordedKeys(f) {
		if name, _ := SnakeCase(key); name != expectedSnakeCase(key) {
			f.Errorf("the rules give %q the name %q, recorded is %q", key, expectedSnakeCase(key), name)
		}
		if i%60 == 0 {
			f.Add(key, "size")
		}
	}
	f.Fuzz(func(t *testing.T, key, other string) {
		name, err := SnakeCase(key)
		if unusable := !utf8.ValidString(key) || strings.Trim(key, " ") == ""; unusable != (err != nil) {
			t.Fatalf("SnakeCase(%q): %v", key, err)
		}
		if err != nil {
			if name != "" || !errors.Is(err, errBlankKey) && !errors.Is(err, errKeyUTF8) {
				t.Errorf("SnakeCase(%q) = %q, %v", key, name, err)
			}
			return
		}
		if want := expectedSnakeCase(key); name != want {
			t.Errorf("SnakeCase(%q) = %q; the rules say %q", key, name, want)
		}
		if letterBeforeNumbers.MatchString(name) {
			return // Digits that a first pass has brought together are taken apart by a second.
		}
		if again, err := SnakeCase(name); err != nil || again != name {
			t.Errorf("the name %q of %q is called %q, %v", name, key, again, err)
		}
		checkNames(t, key, other)
	})
}

// checkNames checks that names do not depend on the order of a map, and that two
// keys that become the same name are both left out.
func checkNames(t *testing.T, key, other string) {
	t.Helper()
	name, _ := SnakeCase(key)
	otherName, otherErr := SnakeCase(other)
	want := map[string]string{}
	if key == other || name != otherName || otherErr != nil {
		want[key] = name
		if otherErr == nil {
			want[other] = otherName
		}
	}
	maps.DeleteFunc(want, func(_, name string) bool { return strings.HasPrefix(name, reservedPrefix) })
	keys := map[string]any{key: 1, other: 2}
	for range 3 {
		var problems problemList
		n := namer{snakeCase: true, problems: &problems}
		if diff := cmp.Diff(want, n.names(keys, nil)); diff != "" {
			t.Fatalf("names of %q and %q: %s", key, other, diff)
		}
		if (len(want) < len(keys)) != (problems.count > 0) {
			t.Fatalf("names of %q and %q: problems %q", key, other, problems.lines())
		}
	}
}

var letterBeforeNumbers = regexp.MustCompile(`([A-Za-z])([0-9]+)([A-Za-z][0-9]+)`)

// expectedSnakeCase applies the rules in one pass from left to right.
func expectedSnakeCase(key string) string {
	key = strings.Trim(letterBeforeNumbers.ReplaceAllString(key, "$1 $2 $3"), " ")
	capital := 'A' <= key[0] && key[0] <= 'Z'
	for _, word := range []string{"HTTP", "URL", "IP"} {
		key = ruledWord(key, word)
	}
	var words []string
	word := ""
	for i := range len(key) {
		c, next := key[i], byte(0)
		if i+1 < len(key) {
			next = key[i+1]
		}
		goesOn := word != "" && !strings.HasSuffix(word, "_")
		switch {
		case goesOn && isUpper(c) && isLower(next):
			words, word = append(words, word), string(c)
		case goesOn && isLower(c) && isUpper(next):
			words, word = append(words, word+string(c)), ""
		case strings.ContainsRune(" _-", rune(c)):
			words, word = append(words, word), ""
		default:
			word += string([]byte{c})
		}
	}
	words = append(words, word)
	name := strings.ToLower(strings.Join(words, "_"))
	if first := strings.ToLower(words[0]); capital && first != "http" && first != "url" && first != "ip" {
		return "_" + name
	}
	return name
}

func ruledWord(key, word string) string {
	at := strings.Index(key, word)
	if at < 0 {
		return key
	}
	end := at + len(word)
	if strings.HasPrefix(key[end:], "s") {
		word, end = word+"S", end+1
	}
	if at > 0 || end == len(key) {
		word = "_" + word
	}
	if end < len(key) {
		word += "_"
	}
	return key[:at] + word + key[end:]
}

// recordedKeys are the keys of testdata/snake_case.tsv.
func recordedKeys(f *testing.F) []string {
	f.Helper()
	file, err := os.Open("testdata/snake_case.tsv")
	if err != nil {
		f.Fatal(err)
	}
	defer file.Close()
	var keys []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		in, _, _ := strings.Cut(lines.Text(), "\t")
		var key string
		if err := json.Unmarshal([]byte(in), &key); err != nil {
			f.Fatal(err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		f.Fatal("no recorded keys")
	}
	return keys
}
