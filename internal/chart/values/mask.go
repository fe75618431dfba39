package values

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ensign-operator/ensign/internal/visible"
)

// Mask hides the values of Secrets in texts of others: errors of Helm, of a schema, of an API
// server. It knows values word for word and in the forms in which such texts quote them, not what
// a template makes of one. A nil Mask hides nothing. It is not safe for concurrent use.
type Mask struct {
	trees []any
	// What follows is built for the first text. long are hidden wherever they stand, the longest
	// first, short ones as whole words.
	built    bool
	tooMany  bool
	long     []string
	replacer *strings.Replacer
	short    *regexp.Regexp
}

const (
	hidden = "(redacted)"
	// hiddenAll stands for a text in which nothing can be hidden.
	hiddenAll = "(not shown: it may have values of Secrets, which are too many to look for)"
	// minLong is the length from which a value is hidden within words too.
	minLong = 4
	// quotedStart is what YAML's parser quotes of a longer text.
	quotedStart = 7
	// maxForms bounds the forms of values that are looked for.
	maxForms = 20_000
)

// NewMask returns a mask for all texts and numbers of the trees.
func NewMask(trees ...any) *Mask { return &Mask{trees: trees} }

// MarshalJSON implements json.Marshaler: what a mask hides reaches another process so.
func (m *Mask) MarshalJSON() ([]byte, error) { return json.Marshal(m.trees) }

// UnmarshalJSON implements json.Unmarshaler.
func (m *Mask) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // It is looked for as it was written.
	*m = Mask{}
	return decoder.Decode(&m.trees)
}

func (m *Mask) build() {
	all := map[string]bool{}
	for _, tree := range m.trees {
		collect(tree, all)
	}
	m.built, m.tooMany = true, len(all) > maxForms
	if m.tooMany {
		return
	}
	var short, pairs []string
	for text := range all {
		switch {
		case utf8.RuneCountInString(text) >= minLong:
			m.long = append(m.long, text)
		case strings.ContainsFunc(text, isWord):
			short = append(short, regexp.QuoteMeta(text))
		}
	}
	longest := func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }
	slices.SortFunc(m.long, longest)
	for _, text := range m.long {
		pairs = append(pairs, text, hidden)
	}
	m.replacer = strings.NewReplacer(pairs...)
	if len(short) > 0 {
		slices.SortFunc(short, longest)
		m.short = regexp.MustCompile(`(^|[^\pL\pN])(` + strings.Join(short, "|") + `)($|[^\pL\pN])`)
	}
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// collect adds the texts and numbers of a tree, in each form in which a text may quote them.
func collect(value any, all map[string]bool) {
	if len(all) > maxForms {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			collect(inner, all)
		}
	case []any:
		for _, inner := range v {
			collect(inner, all)
		}
	case string:
		for _, form := range formsOf(v) {
			if form = strings.TrimSpace(form); form != "" {
				all[form] = true
			}
		}
	case int64, float64, json.Number:
		all[fmt.Sprint(v)] = true
	}
}

// formsOf returns how a text may stand in others: whole, line by line, quoted, encoded, and cut as
// YAML's parser does.
func formsOf(text string) []string {
	forms := []string{text, base64.StdEncoding.EncodeToString([]byte(text)), base64.StdEncoding.EncodeToString([]byte(strings.TrimSpace(text)))}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		inJSON, _ := json.Marshal(line) // A text has a form in JSON.
		forms = append(forms, line, visible.Text(line), strings.Trim(strconv.Quote(line), `"`), strings.Trim(string(inJSON), `"`),
			strings.ReplaceAll(strings.ReplaceAll(line, `\`, `\\`), `'`, `\'`), strings.ReplaceAll(line, `'`, `''`), url.QueryEscape(line), url.PathEscape(line))
		if len(line) > quotedStart {
			forms = append(forms, line[:quotedStart]+"...")
		}
	}
	return forms
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
	text = m.replacer.Replace(text)
	for _, secret := range m.long {
		text = hideCut(text, secret)
	}
	for range 2 { // Two values may share what stands between them.
		if m.short != nil {
			text = m.short.ReplaceAllString(text, "${1}"+hidden+"${3}")
		}
	}
	return text
}

// hideCut hides the end of a secret at the begin of a text, and its begin at the end.
func hideCut(text, secret string) string {
	for n := min(len(secret)-1, len(text)); n >= minLong; n-- {
		if strings.HasSuffix(text, secret[:n]) {
			text = text[:len(text)-n] + hidden
			break
		}
	}
	for n := min(len(secret)-1, len(text)); n >= minLong; n-- {
		if strings.HasPrefix(text, secret[len(secret)-n:]) {
			text = hidden + text[n:]
			break
		}
	}
	return text
}
