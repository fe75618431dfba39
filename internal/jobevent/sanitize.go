package jobevent

import (
	"maps"
	"regexp"
	"strings"

	"github.com/ensign-operator/ensign/internal/jobevent/jsonline"
)

const (
	// maxShownDepth bounds the levels of a result that are shown.
	maxShownDepth = 64
	masked        = "********"
	maskedText    = masked + " (text of a Secret)"
	censored      = "the output has been hidden due to the fact that 'no_log: true' was specified for this result"
)

// A Secret that is written in a text as YAML, JSON or Python has both of these,
// but the end of a long text, with the kind in it, may have been cut.
var (
	secretText = regexp.MustCompile(`(?i)\bkind\\*["']?\s*[:=]\s*\\*["']?Secret(List)?\b`)
	dataText   = regexp.MustCompile(`(?i)\b(data|stringData)\\*["']?\s*[:=]`)
	// environment is the name of the fact that holds the whole environment, and
	// what the debug module calls it or one of its variables.
	environment = regexp.MustCompile(`^(ansible_env|ansible_facts(\.env|\[["']env["']\]))(\W|$)`)
)

// Sanitize gives a copy of a task's result that is fit to be shown: without
// "invocation" and Ansible's own "_ansible_…" members at any depth, with the
// values of the environment among facts and those under data and stringData of
// Secrets masked, and no deeper than 64 levels. A Secret is found as an object, in a list of Secrets, and as YAML or
// JSON in a text, which is then masked whole. Where a result holds a Secret, the
// values under data and stringData of its diff are masked too: a diff shows only
// what changed and need not say of what kind. The same goes for an object that
// was cut and may have lost its kind. In a text with a path such as data[key],
// which only errors about Secrets and ConfigMaps have, every value that is called
// invalid is masked.
func Sanitize(result map[string]any) map[string]any {
	copied, _ := sanitizer{}.object(result, 0).(map[string]any)
	return copied
}

// sanitizer knows what surrounds the value that is copied.
type sanitizer struct {
	// secret is true inside of something whose data is a Secret's.
	secret bool
	// invalid is true beside the path of an invalid value of a Secret.
	invalid bool
}

func (s sanitizer) value(value any, depth int) any {
	switch v := value.(type) {
	case map[string]any:
		return s.object(v, depth)
	case []any:
		return s.list(v, depth)
	case string:
		if s.tells(v) {
			return maskedText
		}
		if s.invalid || secretPath.MatchString(v) {
			return maskInvalid(v)
		}
	}
	return value
}

func (s sanitizer) object(object map[string]any, depth int) any {
	if object == nil {
		return object
	}
	if noLog, _ := object["_ansible_no_log"].(bool); noLog {
		return map[string]any{"censored": censored}
	}
	if depth == maxShownDepth {
		return jsonline.CutMark
	}
	s.secret = s.secret || isSecret(object)
	if field, _ := object["field"].(string); secretPath.MatchString(field) {
		s.invalid = true
	}
	copied := make(map[string]any, len(object))
	for key := range object {
		if key != "invocation" && !strings.HasPrefix(key, "_ansible_") {
			copied[key] = s.member(object, key, depth+1)
		}
	}
	return copied
}

func (s sanitizer) member(object map[string]any, key string, depth int) any {
	switch key {
	case "data", "stringData":
		if s.secret {
			return mask(object[key])
		}
	case "ansible_facts":
		if facts, ok := object[key].(map[string]any); ok && facts["env"] != nil {
			facts = maps.Clone(facts)
			facts["env"] = mask(facts["env"])
			return s.value(facts, depth)
		}
	case "diff":
		s.secret = s.secret || holdsSecret(object, 0)
	}
	if environment.MatchString(key) {
		return mask(object[key])
	}
	return s.value(object[key], depth)
}

// list masks lines of text together: a Secret's kind and data stand on lines of
// their own.
func (s sanitizer) list(list []any, depth int) any {
	if depth == maxShownDepth {
		return jsonline.CutMark
	}
	if text, ok := joined(list); ok {
		if s.tells(text) {
			return []any{maskedText}
		}
		s.invalid = s.invalid || secretPath.MatchString(text)
	}
	copied := make([]any, 0, len(list))
	for _, value := range list {
		copied = append(copied, s.value(value, depth+1))
	}
	return copied
}

func joined(list []any) (string, bool) {
	lines := make([]string, 0, len(list))
	for _, value := range list {
		line, ok := value.(string)
		if !ok {
			return "", false
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), true
}

// tells is true of a text that has the data of a Secret in it.
func (s sanitizer) tells(text string) bool {
	return dataText.MatchString(text) && (s.secret || strings.HasSuffix(text, jsonline.CutMark) || secretText.MatchString(text))
}

// isSecret is also true of a list of Secrets, whose items need not say what they
// are, and of an object that was cut and may have lost its kind.
func isSecret(object map[string]any) bool {
	_, cut := object[jsonline.CutKey]
	kind, _ := object["kind"].(string)
	return cut || kind == "Secret" || kind == "SecretList"
}

func holdsSecret(value any, depth int) bool {
	if depth == maxShownDepth {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		if isSecret(v) {
			return true
		}
		for key, member := range v {
			if key != "invocation" && holdsSecret(member, depth+1) {
				return true
			}
		}
	case []any:
		for _, element := range v {
			if holdsSecret(element, depth+1) {
				return true
			}
		}
	case string:
		return secretText.MatchString(v)
	}
	return false
}

// mask keeps the names under a Secret's data and of an environment, which say
// much and give nothing away.
func mask(value any) any {
	entries, ok := value.(map[string]any)
	if !ok {
		return masked
	}
	copied := make(map[string]any, len(entries))
	for key := range entries {
		copied[key] = masked
	}
	return copied
}
