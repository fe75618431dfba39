package jobevent

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/ensign-operator/ensign/internal/sanitize"
)

// maxStderr is how many bytes of a command's standard error a message shows.
const maxStderr = 1 << 10

// The response of an API server that refuses a request, as modules put it into their
// message: as JSON, or as the text of a Python bytes object.
var (
	apiStatus  = regexp.MustCompile(`(?:\bb(['"]))?\{"kind":\s*"Status",`)
	bytesQuote = map[string]*regexp.Regexp{ //nolint:gochecknoglobals // Constants that Go cannot write as such.
		`'`: regexp.MustCompile(`^(?:[^'\\]|\\.)*'`),
		`"`: regexp.MustCompile(`^(?:[^"\\]|\\.)*"`),
	}
	bytesEscape = regexp.MustCompile(`\\(?:x[0-9a-f]{2}|.)`)
)

// replaceAPIStatus replaces each API Status object in the text by the object's message.
// It leaves an object that was truncated as it is.
func replaceAPIStatus(text string) string {
	at := apiStatus.FindStringSubmatchIndex(text)
	if at == nil {
		return text
	}
	answer, end := text[at[0]:], len(text)
	if at[2] >= 0 {
		begin := at[3]
		quoted := bytesQuote[text[at[2]:at[3]]].FindString(text[begin:])
		if quoted == "" {
			return text
		}
		end = begin + len(quoted)
		answer = unquoteBytes(quoted[:len(quoted)-1])
	}
	var status struct {
		Message string `json:"message"`
	}
	decoder := json.NewDecoder(strings.NewReader(answer))
	if decoder.Decode(&status) != nil || status.Message == "" {
		return text
	}
	if at[2] < 0 {
		end = at[0] + int(decoder.InputOffset())
	}
	return text[:at[0]] + status.Message + replaceAPIStatus(text[end:])
}

// unquoteBytes returns the bytes for the text between the quotes of a Python bytes object.
func unquoteBytes(text string) string {
	return bytesEscape.ReplaceAllStringFunc(text, func(escape string) string {
		switch escape[1] {
		case 'n':
			return "\n"
		case 'r':
			return "\r"
		case 't':
			return "\t"
		case 'x':
			b, _ := strconv.ParseUint(escape[2:], 16, 8) // The pattern has two digits.
			return string([]byte{byte(b)})
		}
		return escape[1:]
	})
}

// returnCodeText returns a note about a task's return code: the signal, if it stands for
// one, or the code, if there is a message before the note; otherwise "".
func returnCodeText(rc any, message string) string {
	number, _ := rc.(json.Number)
	code, err := strconv.Atoi(number.String())
	switch {
	case err != nil || code == 0:
		return ""
	case signalName(code) != "":
		return " (rc " + number.String() + ": ended by " + signalName(code) + ")"
	case message == "":
		return ""
	}
	return " (rc " + number.String() + ")"
}

// stderrText returns the end of a command's standard error as a separate line, or "" if
// the message has it already.
func stderrText(stderr any, message string) string {
	text, _ := stderr.(string)
	text = strings.TrimSpace(text)
	if text == "" || strings.Contains(message, text) {
		return ""
	}
	return "\n" + clipFront(stabilize(sanitize.Text(text)), maxStderr)
}
