package jobevent

import (
	"maps"
	"regexp"
	"strings"
)

const (
	// maxShownDepth is how many levels of a result are shown.
	maxShownDepth = 64
	masked        = "********"
	maskedText    = masked + " (text of a Secret)"
	censored      = "the output has been hidden due to the fact that 'no_log: true' was specified for this result"
)

var (
	// A Secret that is written in a text as YAML, JSON or Python matches secretText and
	// dataText. A long text may have been truncated, with the kind in it.
	secretText = regexp.MustCompile(`(?i)\bkind\\*["']?\s*[:=]\s*\\*["']?Secret(List)?\b`)
	dataText   = regexp.MustCompile(`(?i)\b(data|stringData)\\*["']?\s*[:=]`)
	// environmentFact matches the name of the fact that holds the environment, and the
	// debug module's names for it or for one of its variables.
	environmentFact = regexp.MustCompile(`^(ansible_env|ansible_facts(\.env|\[["']env["']\]))(\W|$)`)
	secretType      = regexp.MustCompile(`^(Opaque$|kubernetes\.io/|bootstrap\.kubernetes\.io/|helm\.sh/release)`)
	// yamlLine matches the line that was not valid YAML, in the error of Python's
	// parser; quotedYAMLLine matches it inside a quoted text.
	yamlLine       = regexp.MustCompile(`(in "<(?:unicode|byte) string>", line \d+, column \d+:\n[ \t]*)[^\n]*`)
	quotedYAMLLine = regexp.MustCompile(`(in \\+"<(?:unicode|byte) string>\\+", line \d+, column \d+:\\+n *).*?(\\+n *\^|$)`)
)

// Sanitize returns a copy of a task's result that is safe to show. It
//
//   - removes "invocation" and Ansible's own members (`_ansible_…`) at any depth,
//   - masks the values of the environment among facts,
//   - masks the values under data and stringData of Secrets,
//   - truncates at 64 levels.
//
// Sanitize finds Secrets as objects, in lists of Secrets, and as YAML or JSON in text,
// which it then masks as a whole. It treats an object as a Secret if the object was
// truncated and may have lost its kind.
//
// If a result or the arguments of its module hold a Secret, Sanitize treats the diff and
// the item of the loop as data of a Secret. The same holds for JSON patches, because they
// show only what changes and may not have a kind. A path such as data[key] occurs only in errors about
// Secrets and ConfigMaps: in a text with one, Sanitize masks every value that the text
// calls invalid. It also masks the line of a YAML error if the YAML did not come from a file.
func Sanitize(result map[string]any) map[string]any {
	copied, _ := sanitizer{}.object(result, 0).(map[string]any)
	return copied
}

// sanitizer knows what surrounds the value that is copied.
type sanitizer struct {
	// inSecret is true inside of something whose data is a Secret's.
	inSecret bool
	// nearSecretPath is true inside of an object or list with the path of an invalid value
	// of a Secret.
	nearSecretPath bool
	// inDiff is true inside of a diff.
	inDiff bool
}

func (s sanitizer) value(value any, depth int) any {
	switch v := value.(type) {
	case map[string]any:
		return s.object(v, depth)
	case []any:
		return s.list(v, depth)
	case string:
		return s.text(v)
	}
	return value
}

func (s sanitizer) text(text string) string {
	if s.revealsSecret(text) {
		return maskedText
	}
	if s.nearSecretPath || secretPath.MatchString(text) {
		text = maskInvalid(text)
	}
	return maskYAML(text)
}

func maskYAML(text string) string {
	text = yamlLine.ReplaceAllString(text, "${1}"+masked)
	return quotedYAMLLine.ReplaceAllString(text, "${1}"+masked+"${2}")
}

func (s sanitizer) object(object map[string]any, depth int) any {
	if object == nil {
		return object
	}
	if noLog, _ := object["_ansible_no_log"].(bool); noLog {
		return map[string]any{"censored": censored}
	}
	if depth == maxShownDepth {
		return CutMark
	}
	s.inSecret = s.inSecret || isSecret(object)
	if field, _ := object["field"].(string); secretPath.MatchString(field) {
		s.nearSecretPath = true
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
	if s.mustMask(object, key) {
		return mask(object[key])
	}
	switch key {
	case "ansible_facts":
		return s.value(maskEnvironment(object[key]), depth)
	case "diff", "item", object["ansible_loop_var"]:
		s.inDiff = s.inDiff || key == "diff"
		s.inSecret = s.inSecret || containsSecret(object, 0)
	}
	return s.value(object[key], depth)
}

// mustMask reports whether the values of a member must be masked.
func (s sanitizer) mustMask(object map[string]any, key string) bool {
	switch key {
	case "stringData": // Only Secrets have it.
		return true
	case "data":
		return s.inSecret
	case "value":
		path, _ := object["path"].(string)
		return s.patchesSecret(path)
	}
	return environmentFact.MatchString(key)
}

func maskEnvironment(value any) any {
	facts, ok := value.(map[string]any)
	if !ok || facts["env"] == nil {
		return value
	}
	facts = maps.Clone(facts)
	facts["env"] = mask(facts["env"])
	return facts
}

// list treats lines of text as one text, because the kind and the data of a Secret are on
// different lines.
func (s sanitizer) list(list []any, depth int) any {
	if depth == maxShownDepth {
		return CutMark
	}
	if text := joinLines(list); text != "" {
		if s.revealsSecret(text) {
			return []any{maskedText}
		}
		if safe := maskYAML(text); safe != text {
			return []any{s.text(safe)}
		}
		s.nearSecretPath = s.nearSecretPath || secretPath.MatchString(text)
	}
	copied := make([]any, 0, len(list))
	for _, value := range list {
		copied = append(copied, s.value(value, depth+1))
	}
	return copied
}

// joinLines returns the texts of a list as one. plain is true if it has nothing else.
func joinLines(list []any) string {
	lines := make([]string, 0, len(list))
	for _, value := range list {
		if line, ok := value.(string); ok {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// patchesSecret reports whether a path in a JSON patch leads to data of a Secret.
func (s sanitizer) patchesSecret(path string) bool {
	root, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return path != root && (root == "stringData" || root == "data" && s.inSecret)
}

// revealsSecret reports whether a text holds data of a Secret. A diff may leave out the
// line with the name of the data, so every diff of a Secret with several lines counts.
func (s sanitizer) revealsSecret(text string) bool {
	if s.inSecret && s.inDiff && strings.Contains(text, "\n") {
		return true
	}
	return dataText.MatchString(text) && (s.inSecret || strings.HasSuffix(text, CutMark) || secretText.MatchString(text))
}

// isSecret also reports true for a list of Secrets, whose items need not have a kind, and
// for an object that was truncated and may have lost its kind.
func isSecret(object map[string]any) bool {
	_, truncated := object[CutKey]
	kind, _ := object["kind"].(string)
	objectType, _ := object["type"].(string)
	return truncated || strings.HasSuffix(kind, CutMark) || kind == "Secret" || kind == "SecretList" || secretType.MatchString(objectType)
}

func containsSecret(value any, depth int) bool {
	if depth == maxShownDepth {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		if isSecret(v) {
			return true
		}
		for _, member := range v {
			if containsSecret(member, depth+1) {
				return true
			}
		}
	case []any:
		for _, element := range v {
			if containsSecret(element, depth+1) {
				return true
			}
		}
	case string:
		return secretText.MatchString(v)
	}
	return false
}

// mask keeps the keys of a Secret's data or of an environment and masks the values.
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
