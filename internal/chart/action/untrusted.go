package action

import (
	"slices"
	"strings"
	"unicode"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/syntax"
)

// RefusedError says that the chart has given untrusted text to tpl, or renders invalid hooks. Only the
// writer of the text, or the author of the watch, can fix it.
type RefusedError struct {
	// Of has the refused text.
	Of   order.Refused
	text string
}

// Error implements error.
func (e *RefusedError) Error() string { return e.text }

// untrusted is a text that must not be evaluated.
type untrusted struct {
	order.Text

	// cores are the text in its forms, without the parts that charts change when they put it into
	// another one.
	cores []string
	// actions are those of the text.
	actions *syntax.Own
}

func learnUntrusted(texts []order.Text) (all []untrusted) {
	for _, text := range texts {
		one := untrusted{Text: text, actions: &syntax.Own{}}
		learn(one.actions, text.Text)
		for _, form := range forms(text.Text) {
			one.cores = append(one.cores, core(form))
		}
		all = append(all, one)
	}
	return all
}

// core returns a text without blanks, quotes and backslashes: indent, nindent, trim, quote and toYaml
// change nothing else of a text, except the indicator of a literal.
func core(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("\"'\\`", r) {
			return -1
		}
		return r
	}, text)
}

// refuse returns an error if a text that is given to tpl has an untrusted text in it, or an action
// of one. This holds also where the chart has the same action itself: a CR could repeat it where
// the chart shows its texts. parsed may be nil.
func (e *evaluator) refuse(text string, parsed *syntax.Text) *RefusedError {
	whole, refused := core(text), &RefusedError{Of: order.RefusedOfSpec}
	var paths []string
	for _, one := range e.untrusted {
		if !one.in(whole, parsed) {
			continue
		}
		path := one.Path
		if one.OfObject {
			path, refused.Of = "what valuesFrom gives for "+path, order.RefusedOfObject
		}
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	refused.text = shown(paths) + "the chart evaluates this value by tpl, so it must not contain {{: remove the braces, or allow the path in templatesInSpec of the watch"
	return refused
}

// in reports whether a text with the core whole contains a part of the untrusted text.
func (u untrusted) in(whole string, parsed *syntax.Text) bool {
	if slices.ContainsFunc(u.cores, func(core string) bool { return strings.Contains(whole, core) }) {
		return true
	}
	return parsed != nil && slices.ContainsFunc(parsed.Actions(), u.actions.Has)
}

// shown returns the first paths for a message.
func shown(paths []string) string {
	const most = 3
	if len(paths) == 0 {
		return ""
	}
	return strings.Join(paths[:min(len(paths), most)], ", ") + ": "
}
