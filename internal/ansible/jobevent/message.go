package jobevent

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/ensign-operator/ensign/internal/sanitize"
)

const (
	// CutMark ends a text that was truncated, or replaces a value that was left out.
	CutMark = "… [cut]"
	// CutKey is the key that is added to an object of which members were left out.
	CutKey = "…"
)

// Patterns for the parts that differ between two runs with the same failure; for the path of a
// value in a Secret and the quotes around that value.
var (
	temporaryDir  = regexp.MustCompile(`ansible-tmp-[0-9.]+-[0-9]+-[0-9]+`)
	localTemp     = regexp.MustCompile(`ansible-local-[0-9]+[a-z0-9_]{8}`)
	payload       = regexp.MustCompile(`(ansible_[\w.]+_payload_)[a-z0-9_]{8}\b`)
	asyncJob      = regexp.MustCompile(`\bj[0-9]{6,}\.[0-9]+\b`)
	processID     = regexp.MustCompile(`(?i)\b(pid)( is |[ =:]+)[0-9]+\b`)
	localPort     = regexp.MustCompile(`:[0-9]{2,5}->`)
	elapsed       = regexp.MustCompile(`\b[0-9]+\.[0-9]{3,}( ?)(s|ms|sec|seconds)\b|\b[0-9]:[0-9]{2}:[0-9]{2}\.[0-9]{6}\b`)
	httpTime      = regexp.MustCompile(`\b[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT\b`)
	temporaryFile = regexp.MustCompile(`/tmp[a-z0-9_]{8}\b`)
	address       = regexp.MustCompile(`\b0x[0-9a-f]{8,16}\b`)
	preciseTime   = regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,]\d+`)
	answerHeader  = regexp.MustCompile(`'(Audit-Id|Date)': '[^']*'`)
	secretPath    = regexp.MustCompile(`(^|[^\w.\]]|\\[nrt])(data|stringData)\[`)
	quoteBegins   = regexp.MustCompile(`^\s*(\\*)"`)
	wordEnds      = regexp.MustCompile(`: |[\r\n]|$`)
)

const (
	// maxFailedItems is how many failed items of a loop a message shows.
	maxFailedItems = 5
	// maxItemMessage is the maximum length of the message of one item.
	maxItemMessage = 320
)

// message returns the msg of a result, or Ansible's text for a result under no_log. For
// a command that failed it adds the return code and the end of the standard error. It
// returns "" if there is nothing to show.
func message(result map[string]any) string {
	fields := map[string]any{}
	for _, key := range []string{"msg", "message", "censored", "rc", "stderr", "_ansible_no_log"} {
		fields[key] = result[key]
	}
	sanitized := Sanitize(fields)
	text := render(sanitized["msg"])
	switch {
	case text == "":
		text = render(sanitized["censored"])
	case strings.HasSuffix(text, "Unknown error."):
		// For include_vars, Ansible puts this text into msg, and the error is in message.
		text = strings.TrimSpace(text + " " + render(sanitized["message"]))
	}
	if plain := replaceAPIStatus(text); plain != text {
		text = sanitizer{}.text(plain)
	}
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text + returnCodeText(sanitized["rc"], text) + stderrText(sanitized["stderr"], text))
}

// itemMessage returns the message of one item of a loop, with the item as the loop
// labels it. It puts the result beside the item for Sanitize, because the item may hold
// the data of a Secret if the result does.
func itemMessage(result map[string]any) string {
	sanitized := Sanitize(map[string]any{"item": result["_ansible_item_label"], "invocation": result})
	label := render(sanitized["item"])
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

// stabilize replaces the parts that differ between two runs with the same failure. These are names
// of temporary files, ids of processes and jobs, addresses of objects, local ports, times and
// durations, and headers that differ in each response of an API server.
func stabilize(text string) string {
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

// maskInvalid masks the values that an API server reports as invalid. A quoted value ends
// at a quote with as many backslashes before it as the first quote has; a value without
// such a quote was truncated.
func maskInvalid(text string) string {
	const prefix = "Invalid value:"
	var b strings.Builder
	for {
		before, value, found := strings.Cut(text, prefix)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		begin, end := " ", wordEnds.FindStringIndex(value)[0]
		if quote := quoteBegins.FindStringSubmatch(value); quote != nil {
			begin = quote[0]
			end = len(begin) + closingQuote(value[len(begin):], len(quote[1]))
		}
		b.WriteString(prefix + begin + masked)
		text = value[end:]
	}
}

// closingQuote returns the index of the first quote with exactly so many backslashes
// before it, including these; len(text) if there is none.
func closingQuote(text string, escapes int) int {
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

// clipVisible returns at most limit bytes of the text, made safe by Visible.
func clipVisible(text string, limit int) string {
	return clip(sanitize.Text(clip(text, limit)), limit)
}

// clip returns at most limit bytes of text, cut between two characters, with CutMark at
// the end if it was cut.
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

// clipFront is like clip, but cuts the beginning.
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
