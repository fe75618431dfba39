package jobevent

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// maxPrinted bounds what is told of the end of what a command printed.
const maxPrinted = 1 << 10

// What an API server answers to a request that it refuses, as modules put it into
// their message: as JSON, or as Python writes the bytes of that.
var (
	apiStatus  = regexp.MustCompile(`(?:\bb(['"]))?\{"kind":\s*"Status",`)
	bytesQuote = map[string]*regexp.Regexp{ //nolint:gochecknoglobals // Constants that Go cannot write as such.
		`'`: regexp.MustCompile(`^(?:[^'\\]|\\.)*'`),
		`"`: regexp.MustCompile(`^(?:[^"\\]|\\.)*"`),
	}
	bytesEscape = regexp.MustCompile(`\\(?:x[0-9a-f]{2}|.)`)
)

// plainStatus puts the message of an API server's answer where a text has the whole
// answer. What is no whole answer, because it was cut, stays as it is.
func plainStatus(text string) string {
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
	return text[:at[0]] + status.Message + plainStatus(text[end:])
}

// unquoteBytes is what Python wrote between the quotes of bytes.
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

// exited says which signal a task's return code tells of, and behind a message
// what it is.
func exited(rc any, message string) string {
	number, _ := rc.(json.Number)
	code, err := strconv.Atoi(number.String())
	switch {
	case err != nil || code == 0:
		return ""
	case signal(code) != "":
		return " (rc " + number.String() + ": ended by " + signal(code) + ")"
	case message == "":
		return ""
	}
	return " (rc " + number.String() + ")"
}

// printed is the end of what a command printed as its errors, as a line of its own,
// where the message of its failure does not have it.
func printed(stderr any, message string) string {
	text, _ := stderr.(string)
	text = strings.TrimSpace(text)
	if text == "" || strings.Contains(message, text) {
		return ""
	}
	return "\n" + clipFront(steady(Visible(text)), maxPrinted)
}
