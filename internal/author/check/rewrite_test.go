package check

import "testing"

func TestConditionsWithoutTemplates(t *testing.T) {
	for text, want := range map[string]string{
		`a | length`:                 `a | length`,
		`{{ a }}`:                    `a`,
		`{{ a or b }}`:               `a or b`,
		`{{ a }} == 'b'`:             `a == 'b'`,
		`{{ a | int }} > 1`:          `(a | int) > 1`,
		`x == '{{ y }}'`:             `x == (y | string)`,
		`x == "pre-{{ y }}.{{ z }}"`: `x == ("pre-" ~ y ~ "." ~ z)`,
		`'it''s' ~ "{{ y.z }}"`:      `'it''s' ~ (y.z | string)`,
		`x is search('a\'{{ y }}')`:  `x is search(('a\'' ~ y))`,
		`{{ a }} and {{ b }}`:        `a and b`,
		`{% if a %}true{% endif %}`:  "",
		`x == '{{ y`:                 "",
		`x == "y`:                    "",
	} {
		got, ok := withoutTemplates(text)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%s: want %q, got %q, %v", text, want, got, ok)
		}
	}
}
