package values

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"math/bits"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ensign-operator/ensign/internal/sanitize"
)

// Mask redacts the values of Secrets in errors of Helm, of a schema or of an API server. It finds values
// verbatim and in the forms in which such texts quote them, but not after a template has changed
// them. A nil Mask redacts nothing. It is not safe for concurrent use.
//
// A tenant may write Secrets, and texts that repeat them. So the cost of a mask and the cost of a
// text grow only with their length, whatever the content.
type Mask struct {
	trees []any
	// The next fields are built for the first text.
	built, tooMany bool
	// forms are found anywhere in a text, up to window bytes each; words are found as whole words
	// alone. lengths and wordLengths have a bit for each length of these, lengths by their first
	// bytes.
	forms, words map[string]bool
	lengths      map[[minLong]byte]uint64
	wordLengths  uint64
	// windows has a hash of each part of window bytes of the longer forms: a text with such a part
	// repeats a value, however it was cut.
	windows map[uint64]struct{}
	// all are the forms of any length, for texts in which one was cut.
	all []string
}

const (
	redacted = "(redacted)"
	// hiddenAll replaces a text that cannot be redacted.
	hiddenAll = "(not shown: it may have values of Secrets, which are too many to look for)"
	// minLong is the length from which a value is hidden within words too.
	minLong = 4
	// quotedStart is the length of the part that YAML's parser quotes of a longer text.
	quotedStart = 7
	// maxForms and maxBytes bound the forms of values that are looked for.
	maxForms = 20_000
	maxBytes = 4 << 20
	maxWhole = 4 << 10
	// window is the length of the parts by which longer forms are found. Up to 63: see lengths.
	window = 32
	// factor makes the hash of a part. It need not be secret: parts with the same hash hide too much.
	factor = 0x9E3779B97F4A7C15
)

// NewMask returns a mask for all texts and numbers of the trees.
func NewMask(trees ...any) *Mask { return &Mask{trees: trees} }

// MarshalJSON implements json.Marshaler: so another process gets the hidden values.
func (m *Mask) MarshalJSON() ([]byte, error) { return json.Marshal(m.trees) }

// UnmarshalJSON implements json.Unmarshaler.
func (m *Mask) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // Keep the spelling of numbers.
	*m = Mask{}
	return decoder.Decode(&m.trees)
}

func (m *Mask) build() {
	c := collector{forms: map[string]bool{}}
	for _, tree := range m.trees {
		c.collect(tree)
	}
	m.built, m.tooMany = true, c.full()
	if m.tooMany {
		return
	}
	m.forms, m.words, m.lengths, m.windows = map[string]bool{}, map[string]bool{}, map[[minLong]byte]uint64{}, map[uint64]struct{}{}
	for text := range c.forms {
		switch {
		case utf8.RuneCountInString(text) >= minLong:
			m.add(text)
		case strings.ContainsFunc(text, isWord):
			m.words[text] = true
			m.wordLengths |= 1 << len(text)
		}
	}
}

// add looks for a form from now on.
func (m *Mask) add(text string) {
	m.all = append(m.all, text)
	if len(text) > window {
		for _, hash := range hashes(text) {
			m.windows[hash] = struct{}{}
		}
		return
	}
	m.forms[text] = true
	m.lengths[[minLong]byte([]byte(text[:minLong]))] |= 1 << len(text)
}

// hashes yields the position of each part of a text of window bytes, and its hash, which is a
// polynomial of its bytes.
func hashes(text string) iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		var hash, first uint64 = 0, 1 // first is the weight of the byte that leaves the window.
		for range window - 1 {
			first *= factor
		}
		for i := range len(text) {
			if i >= window {
				hash -= first * (uint64(text[i-window]) + 1)
			}
			hash = hash*factor + uint64(text[i]) + 1
			if i >= window-1 && !yield(i-window+1, hash) {
				return
			}
		}
	}
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// collector gathers forms of texts and numbers, until they are too many.
type collector struct {
	forms map[string]bool
	bytes int
}

func (c *collector) full() bool { return len(c.forms) > maxForms || c.bytes > maxBytes }

// collect adds the texts and numbers of a tree, in each form in which a text may quote them.
func (c *collector) collect(value any) {
	if c.full() {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			c.collect(inner)
		}
	case []any:
		for _, inner := range v {
			c.collect(inner)
		}
	case string:
		for form := range formsOf(v) {
			if form = strings.TrimSpace(form); form != "" && !c.forms[form] {
				c.forms[form] = true
				c.bytes += len(form)
			}
			if c.full() {
				return
			}
		}
	case int64, float64, json.Number:
		c.forms[fmt.Sprint(v)] = true
	}
}

// formsOf yields the forms of a text in other texts: whole, line by line, quoted, encoded, and cut as by
// YAML's parser. The lines of a long text replace the whole.
func formsOf(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		wholes := []string{base64.StdEncoding.EncodeToString([]byte(text)), base64.StdEncoding.EncodeToString([]byte(strings.TrimSpace(text)))}
		if len(text) <= maxWhole {
			wholes = append(wholes, text)
		}
		for _, whole := range wholes {
			if !yield(whole) {
				return
			}
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			inJSON, _ := json.Marshal(line) // A text has a form in JSON.
			forms := []string{
				line, sanitize.Text(line), strings.Trim(strconv.Quote(line), `"`), strings.Trim(string(inJSON), `"`),
				strings.ReplaceAll(strings.ReplaceAll(line, `\`, `\\`), `'`, `\'`), strings.ReplaceAll(line, `'`, `''`), url.QueryEscape(line), url.PathEscape(line),
			}
			if len(line) > quotedStart {
				forms = append(forms, line[:quotedStart]+"...")
			}
			for _, form := range forms {
				if !yield(form) {
					return
				}
			}
		}
	}
}

// Text returns the text without the values. A value that the text was cut in is hidden too.
func (m *Mask) Text(text string) string {
	if m == nil || text == "" {
		return text
	}
	if !m.built {
		m.build()
	}
	if m.tooMany {
		return hiddenAll
	}
	var shown strings.Builder
	from, end := 0, 0 // from is where the shown text begins, end is where the hidden text ends.
	for i, n := range m.found(text) {
		switch {
		case n == 0:
			continue
		case i >= end: // Another stretch. Values that overlap are one.
			shown.WriteString(text[from:i])
			shown.WriteString(redacted)
		}
		end = max(end, i+n)
		from = end
	}
	return shown.String() + text[from:]
}

// found returns for each position of a text how many bytes from there are to be hidden.
func (m *Mask) found(text string) []int {
	found := make([]int, len(text))
	for i := range found {
		if i+minLong <= len(text) {
			found[i] = longest(m.forms, m.lengths[[minLong]byte([]byte(text[i:i+minLong]))], text[i:])
		}
		if m.wordLengths != 0 && !endsWithWord(text[:i]) {
			found[i] = max(found[i], longest(m.words, m.wordLengths, text[i:], endsTheWord))
		}
	}
	for i, hash := range hashes(text) {
		if _, has := m.windows[hash]; has {
			found[i] = max(found[i], window)
		}
	}
	for _, form := range m.all {
		for n := minLong; n < min(len(form), window, len(text)+1); n++ {
			if strings.HasPrefix(text, form[len(form)-n:]) {
				found[0] = max(found[0], n)
			}
			if at := len(text) - n; text[at:] == form[:n] {
				found[at] = max(found[at], n)
			}
		}
	}
	return found
}

// longest returns the length of the longest form with which a text begins, if the conditions hold for
// the rest of the text; 0 if there is none. lengths has a bit for each possible length.
func longest(forms map[string]bool, lengths uint64, text string, conditions ...func(rest string) bool) int {
	for lengths != 0 {
		n := bits.Len64(lengths) - 1
		lengths &^= 1 << n
		if n <= len(text) && forms[text[:n]] && !slices.ContainsFunc(conditions, func(holds func(string) bool) bool { return !holds(text[n:]) }) {
			return n
		}
	}
	return 0
}

func endsWithWord(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	return isWord(last)
}

func endsTheWord(rest string) bool {
	first, _ := utf8.DecodeRuneInString(rest)
	return !isWord(first)
}
