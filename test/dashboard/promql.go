package dashboard

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// Selector asks for series.
type Selector struct {
	Metric string
	// Labels are those that the series must have, because they are matched, or kept by
	// what is made of them.
	Labels []string
}

// Types of values. An instant vector is one value for each series, a range many.
const (
	scalar  = "scalar"
	instant = "instant vector"
	ranges  = "range vector"
)

// functions have the types of what they take; all but scalar literals give instants.
func functions() map[string][]string {
	return map[string][]string{
		"rate": {ranges}, "increase": {ranges}, "max_over_time": {ranges},
		"histogram_quantile": {scalar, instant}, "vector": {scalar}, "clamp_min": {instant, scalar},
	}
}

// Parse checks an expression and gives its selectors. What is wrong is an error, and so
// is what this package does not know.
func Parse(expr string) (found []Selector, err error) {
	p := &parser{text: expr}
	defer func() {
		if r := recover(); r != nil {
			wrong, ok := r.(wrongError)
			if !ok {
				panic(r)
			}
			err = fmt.Errorf("%q: %s", expr, string(wrong))
		}
	}()
	p.next()
	if kind := p.expression(0); kind == ranges {
		p.fail("a range vector can't be shown")
	}
	if p.token != "" {
		p.fail("%q is left over", p.token)
	}
	return p.found, nil
}

type wrongError string

func (e wrongError) Error() string { return string(e) }

type parser struct {
	text, token string
	found       []Selector
	// kept are labels by which what is parsed is grouped.
	kept []string
}

func (p *parser) fail(format string, args ...any) { panic(wrongError(fmt.Sprintf(format, args...))) }

// next reads a token; "" is the end.
func (p *parser) next() string {
	taken := p.token
	match := regexp.MustCompile(`^\s*("(?:[^"\\]|\\.)*"|\d+(?:\.\d+)?(?:ms|[smhdwy])?|[a-zA-Z_:][a-zA-Z0-9_:]*|=~|!~|!=|==|<=|>=|[-+*/%^<>=(){}\[\],])`).FindStringSubmatch(p.text)
	switch {
	case match != nil:
		p.token, p.text = match[1], p.text[len(match[0]):]
	case regexp.MustCompile(`^\s*$`).MatchString(p.text):
		p.token, p.text = "", ""
	default:
		p.fail("%q is no PromQL", p.text)
	}
	return taken
}

func (p *parser) expect(token string) {
	if p.token != token {
		p.fail("%q where %q belongs", p.token, token)
	}
	p.next()
}

// levels of binary operators, from the loosest.
func levels() [][]string {
	return [][]string{{"or"}, {"and", "unless"}, {"==", "!=", "<=", "<", ">=", ">"}, {"+", "-"}, {"*", "/", "%"}}
}

func (p *parser) expression(level int) string {
	if level == len(levels()) {
		return p.operand()
	}
	kind := p.expression(level + 1)
	for slices.Contains(levels()[level], p.token) {
		operator := p.next()
		right := p.expression(level + 1)
		if kind == ranges || right == ranges {
			p.fail("a range vector beside %q", operator)
		}
		if level < 2 && (kind == scalar || right == scalar) {
			p.fail("a number beside %q", operator)
		}
		if right == instant {
			kind = instant
		}
	}
	return kind
}

func (p *parser) operand() string {
	switch {
	case p.token == "(":
		p.next()
		kind := p.expression(0)
		p.expect(")")
		return kind
	case regexp.MustCompile(`^\d+(\.\d+)?$`).MatchString(p.token):
		p.next()
		return scalar
	case regexp.MustCompile(`^[a-zA-Z_:]`).MatchString(p.token):
		return p.named(p.next())
	}
	p.fail("%q where a value belongs", p.token)
	return ""
}

func (p *parser) named(name string) string {
	if slices.Contains([]string{"sum", "avg", "min", "max", "count"}, name) {
		return p.aggregation()
	}
	takes, ok := functions()[name]
	if !ok {
		if p.token == "(" {
			p.fail("the function %q is not known", name)
		}
		return p.selector(name)
	}
	for i, want := range takes {
		p.expect(map[bool]string{true: "(", false: ","}[i == 0])
		before := len(p.found)
		if kind := p.expression(0); kind != want {
			p.fail("%s takes a %s, not a %s", name, want, kind)
		}
		for j := before; name == "histogram_quantile" && j < len(p.found); j++ {
			if !slices.Contains(p.found[j].Labels, "le") {
				p.fail("%s of what has no le any more", name)
			}
		}
	}
	p.expect(")")
	return instant
}

func (p *parser) aggregation() string {
	outer := p.kept
	if p.token == "by" {
		p.next()
		p.kept = append(slices.Clone(p.kept), p.names()...)
	}
	p.expect("(")
	if kind := p.expression(0); kind != instant {
		p.fail("an aggregation of a %s", kind)
	}
	p.expect(")")
	p.kept = outer
	return instant
}

func (p *parser) names() []string {
	var names []string
	p.expect("(")
	for p.token != ")" {
		names = append(names, p.next())
		if p.token != ")" {
			p.expect(",")
		}
	}
	p.next()
	return names
}

func (p *parser) selector(metric string) string {
	found := Selector{Metric: metric, Labels: slices.Clone(p.kept)}
	if p.token == "{" {
		p.next()
		for p.token != "}" {
			found.Labels = append(found.Labels, p.matcher())
			if p.token != "}" {
				p.expect(",")
			}
		}
		p.next()
	}
	p.found = append(p.found, found)
	if p.token != "[" {
		return instant
	}
	p.next()
	if span := p.next(); !regexp.MustCompile(`^\d+(ms|[smhdwy])$`).MatchString(span) {
		p.fail("%q is no time", span)
	}
	p.expect("]")
	return ranges
}

// matcher returns the label that is matched.
func (p *parser) matcher() string {
	label, operator := p.next(), p.next()
	if !regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`).MatchString(label) || !slices.Contains([]string{"=", "!=", "=~", "!~"}, operator) {
		p.fail("%s%s matches no label", label, operator)
	}
	value, err := strconv.Unquote(p.token)
	if err != nil {
		p.fail("%s is matched with %s, which is no text", label, p.token)
	}
	if _, err := regexp.Compile(value); err != nil && len(operator) == 2 && operator != "!=" {
		p.fail("%s is matched with what is no regular expression: %v", label, err)
	}
	p.next()
	return label
}
