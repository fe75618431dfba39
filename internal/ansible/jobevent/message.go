package jobevent

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// CutMark ends a text, and stands for a value, of which the rest was too large to keep.
	CutMark = "… [cut]"
	// CutKey is the member which says of an object that others are missing.
	CutKey = "…"
)

// What differs between two runs that fail alike, the path of a value of a Secret
// and what surrounds that value, and colours of a terminal.
var (
	temporaryDir   = regexp.MustCompile(`ansible-tmp-[0-9.]+-[0-9]+-[0-9]+`)
	localTemp      = regexp.MustCompile(`ansible-local-[0-9]+[a-z0-9_]{8}`)
	payload        = regexp.MustCompile(`(ansible_[\w.]+_payload_)[a-z0-9_]{8}\b`)
	asyncJob       = regexp.MustCompile(`\bj[0-9]{6,}\.[0-9]+\b`)
	processID      = regexp.MustCompile(`(?i)\b(pid)( is |[ =:]+)[0-9]+\b`)
	localPort      = regexp.MustCompile(`:[0-9]{2,5}->`)
	elapsed        = regexp.MustCompile(`\b[0-9]+\.[0-9]{3,}( ?)(s|ms|sec|seconds)\b|\b[0-9]:[0-9]{2}:[0-9]{2}\.[0-9]{6}\b`)
	httpTime       = regexp.MustCompile(`\b[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT\b`)
	temporaryFile  = regexp.MustCompile(`/tmp[a-z0-9_]{8}\b`)
	address        = regexp.MustCompile(`\b0x[0-9a-f]{8,16}\b`)
	preciseTime    = regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,]\d+`)
	answerHeader   = regexp.MustCompile(`'(Audit-Id|Date)': '[^']*'`)
	secretPath     = regexp.MustCompile(`(^|[^\w.\]]|\\[nrt])(data|stringData)\[`)
	quoteBegins    = regexp.MustCompile(`^\s*(\\*)"`)
	wordEnds       = regexp.MustCompile(`: |[\r\n]|$`)
	terminalColour = regexp.MustCompile("\x1b\\[[0-9;]*m")
)

const (
	// maxItems bounds the items of loops whose failure is told.
	maxItems = 5
	// maxItemMessage bounds what is told of one of them.
	maxItemMessage = 320
)

// message is Ansible's msg of a result, or what stands for it under no_log, and
// of a command that failed its return code and the end of its errors; "" where
// there is nothing.
func message(result map[string]any) string {
	told := map[string]any{}
	for _, key := range []string{"msg", "message", "censored", "rc", "stderr", "_ansible_no_log"} {
		told[key] = result[key]
	}
	fit := Sanitize(told)
	text := render(fit["msg"])
	switch {
	case text == "":
		text = render(fit["censored"])
	case strings.HasSuffix(text, "Unknown error."):
		// include_vars says what it met beside msg, and Ansible fills that in.
		text = strings.TrimSpace(text + " " + render(fit["message"]))
	}
	if plain := plainStatus(text); plain != text {
		text = sanitizer{}.text(plain)
	}
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text + exited(fit["rc"], text) + printed(fit["stderr"], text))
}

// itemMessage is the message of one item of a loop, with the item as the loop
// labels it. Where the result tells of a Secret, so may the item, and the result
// stands where Sanitize looks for that and shows nothing of it.
func itemMessage(result map[string]any) string {
	fit := Sanitize(map[string]any{"item": result["_ansible_item_label"], "invocation": result})
	label := render(fit["item"])
	if label == "" {
		return clip(message(result), maxItemMessage)
	}
	return clip("(item="+clip(label, maxFailureName)+") "+message(result), maxItemMessage)
}

// render returns a string as it is and everything else as JSON.
func render(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}

// Visible returns text that a terminal or a log shows as it is: terminal colours
// are taken out, line ends become line feeds, and every other character without
// a shape of its own (controls, escapes, changes of the writing direction)
// becomes its Go escape. Tabs and line feeds stay. The result is valid UTF-8.
func Visible(text string) string {
	if !strings.ContainsFunc(text, hidden) && utf8.ValidString(text) {
		return text
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = terminalColour.ReplaceAllLiteralString(text, "")
	var b strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

func hidden(r rune) bool {
	return r != '\n' && r != '\t' && !unicode.IsGraphic(r) || r == '\u2028' || r == '\u2029'
}

// steady replaces what differs between two runs that fail alike: names of
// temporary files, ids of processes and jobs, addresses of objects, the port of
// this end of a connection, the time and how long something took, and the headers
// of an API server's answer that are new with each.
func steady(text string) string {
	text = temporaryDir.ReplaceAllLiteralString(text, "ansible-tmp-…")
	text = localTemp.ReplaceAllLiteralString(text, "ansible-local-…")
	text = payload.ReplaceAllString(text, "${1}…")
	text = temporaryFile.ReplaceAllLiteralString(text, "/tmp…")
	text = asyncJob.ReplaceAllLiteralString(text, "j…")
	text = processID.ReplaceAllString(text, "${1}${2}…")
	text = localPort.ReplaceAllLiteralString(text, ":…->")
	text = address.ReplaceAllLiteralString(text, "0x…")
	text = answerHeader.ReplaceAllString(text, "'$1': '…'")
	text = preciseTime.ReplaceAllLiteralString(text, "(time)")
	text = httpTime.ReplaceAllLiteralString(text, "(time)")
	return elapsed.ReplaceAllString(text, "…$1$2")
}

// maskInvalid masks the values that an API server has found invalid. Where one is
// quoted, it ends with a quote that is escaped as often as the first; one that
// does not end was cut.
func maskInvalid(text string) string {
	const mark = "Invalid value:"
	var b strings.Builder
	for {
		before, value, found := strings.Cut(text, mark)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		begin, end := " ", wordEnds.FindStringIndex(value)[0]
		if quote := quoteBegins.FindStringSubmatch(value); quote != nil {
			begin = quote[0]
			end = len(begin) + quoteEnd(value[len(begin):], len(quote[1]))
		}
		b.WriteString(mark + begin + masked)
		text = value[end:]
	}
}

// quoteEnd is where a quote stands behind exactly so many backslashes, with them.
func quoteEnd(text string, escapes int) int {
	run := 0
	for i := range len(text) {
		switch {
		case text[i] == '"' && run == escapes:
			return i - run
		case text[i] == '\\':
			run++
			continue
		}
		run = 0
	}
	return len(text)
}

// shown is text made visible, in at most limit bytes.
func shown(text string, limit int) string {
	return clip(Visible(clip(text, limit)), limit)
}

// clip returns at most limit bytes of text, cut between characters and marked.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len(CutMark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + CutMark
}

// clipFront is clip, but cuts the beginning.
func clipFront(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	begin := len(text) - limit + len(CutMark)
	for begin < len(text) && !utf8.RuneStart(text[begin]) {
		begin++
	}
	return CutMark + text[begin:]
}
