package jobevent

import (
	"maps"
	"regexp"
	"strings"
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
	secretType  = regexp.MustCompile(`^(Opaque$|kubernetes\.io/|bootstrap\.kubernetes\.io/|helm\.sh/release)`)
	// The line at which a text was no YAML, as Python's parser shows it, and the
	// same within a text that is quoted.
	yamlLine       = regexp.MustCompile(`(in "<(?:unicode|byte) string>", line \d+, column \d+:\n[ \t]*)[^\n]*`)
	quotedYAMLLine = regexp.MustCompile(`(in \\+"<(?:unicode|byte) string>\\+", line \d+, column \d+:\\+n *).*?(\\+n *\^|$)`)
)

// Sanitize returns a copy of a task's result that is fit to be shown: without
// "invocation" and Ansible's own "_ansible_…" members at any depth, with the
// values of the environment among facts and those under data and stringData of
// Secrets masked, and no deeper than 64 levels. A Secret is found as an object, in
// a list of Secrets, and as YAML or JSON in a text, which is then masked whole. An
// object that was cut and may have lost its kind counts as one.
//
// Where a result or the arguments of its module hold a Secret, its diff and the
// item of its loop are taken for a Secret's too, JSON patches among them: they show
// only what changes, and need not say of what kind. In a text with a path such as
// data[key], which only errors about Secrets and ConfigMaps have, every value that
// is called invalid is masked, and so is the line at which a text that came from no
// file was no YAML.
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
	// diff is true inside of a diff.
	diff bool
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
	if s.tells(text) {
		return maskedText
	}
	if s.invalid || secretPath.MatchString(text) {
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
	if s.hides(object, key) {
		return mask(object[key])
	}
	switch key {
	case "ansible_facts":
		return s.value(withoutEnvironment(object[key]), depth)
	case "diff", "item", object["ansible_loop_var"]:
		s.diff = s.diff || key == "diff"
		s.secret = s.secret || holdsSecret(object, 0)
	}
	return s.value(object[key], depth)
}

// hides is true of a member of which only names may be shown.
func (s sanitizer) hides(object map[string]any, key string) bool {
	switch key {
	case "stringData": // Nothing but a Secret has it.
		return true
	case "data":
		return s.secret
	case "value":
		path, _ := object["path"].(string)
		return s.patches(path)
	}
	return environment.MatchString(key)
}

func withoutEnvironment(value any) any {
	facts, ok := value.(map[string]any)
	if !ok || facts["env"] == nil {
		return value
	}
	facts = maps.Clone(facts)
	facts["env"] = mask(facts["env"])
	return facts
}

// list masks lines of text together: a Secret's kind and data stand on lines of
// their own.
func (s sanitizer) list(list []any, depth int) any {
	if depth == maxShownDepth {
		return CutMark
	}
	if text, ok := joined(list); ok {
		if s.tells(text) {
			return []any{maskedText}
		}
		if fit := maskYAML(text); fit != text {
			return []any{s.text(fit)}
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

// patches is true of a path in a JSON patch that leads to data of a Secret.
func (s sanitizer) patches(path string) bool {
	root, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return path != root && (root == "stringData" || root == "data" && s.secret)
}

// tells is true of a text that has the data of a Secret in it. A diff may leave out
// what says that it is data.
func (s sanitizer) tells(text string) bool {
	if s.secret && s.diff && strings.Contains(text, "\n") {
		return true
	}
	return dataText.MatchString(text) && (s.secret || strings.HasSuffix(text, CutMark) || secretText.MatchString(text))
}

// isSecret is also true of a list of Secrets, whose items need not say what they
// are, and of an object that was cut and may have lost its kind.
func isSecret(object map[string]any) bool {
	_, cut := object[CutKey]
	kind, _ := object["kind"].(string)
	sort, _ := object["type"].(string)
	return cut || strings.HasSuffix(kind, CutMark) || kind == "Secret" || kind == "SecretList" || secretType.MatchString(sort)
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
		for _, member := range v {
			if holdsSecret(member, depth+1) {
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
