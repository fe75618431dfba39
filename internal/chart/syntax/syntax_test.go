package syntax

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatATextHas(t *testing.T) {
	text, err := Parse("{{ define `d` }}{{ f \"a\" }}{{ end }}{{ if g `b` }}{{ (h).x }}{{ else }}{{ template \"d\" (i 1) }}{{ end }}{{/* k */}}")
	if err != nil {
		t.Fatal(err)
	}
	functions, constants := text.Functions(), text.Constants()
	slices.Sort(functions)
	slices.Sort(constants)
	if diff := cmp.Diff([][]string{{"f", "g", "h", "i"}, {"a", "b"}}, [][]string{functions, constants}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Parse("{{ if x }}"); err == nil {
		t.Error("half a text was read")
	}
}

func TestWhichActionsAreOwn(t *testing.T) {
	for why, test := range map[string]struct {
		own     []string
		text    string
		foreign string // "" if all are own
	}{
		"the same":                            {[]string{`{{ a "b" }}`}, `{{ a "b" }}`, ""},
		"with other blanks, marks and quotes": {[]string{"{{a `b\"`\n}}"}, `x {{- /* c */ -}} {{- a  "b\"" -}}`, ""},
		"another constant":                    {[]string{`{{ a "b" }}`}, `{{ a "c" }}`, `{{ a "c" }}`},
		"the first that is foreign":           {[]string{`{{ a }}`}, `{{ a }} {{ b }} {{ c }}`, `{{ b }}`},
		"one in a branch":                     {[]string{`{{ if a }}{{ end }}`}, `{{ if a }}{{- b -}}{{ end }}`, `{{- b -}}`},
		"a branch that is only printed":       {[]string{`{{ a }}`}, `{{ if a }}{{ end }}`, `{{ if a }}`},
		"another half of a branch":            {[]string{`{{ if a }}{{ end }}`}, `{{ if a }}{{ else }}{{ end }}`, `{{ if a }}`},
		"a definition":                        {[]string{`{{ template "a" . }}`}, `{{ define "a" }}b{{ end }}{{ template "a" . }}`, `{{ define "a" }}`},
		"halves of texts":                     {[]string{`{{ with $.x }}`, `{{ else with y }}`, `{{ end`}, `{{ with $.x }}{{ else with y }}{{ end }}`, ""},
		"halves with an else":                 {[]string{`a {{ if y }} {{ "}}" | z }}`, `{{ range $i, $e := w }}`, `{{ $i }}{{ else }}`}, `{{ if y }}{{ z | print }}{{ end }}`, `{{ z | print }}`},
		"variables that are set elsewhere":    {[]string{`{{ range $i, $e := w }}`, `{{ $i }}{{ else }}`, `{{ "}}" }}{{ end`}, `{{ range $i, $e := w }}{{ $i }}{{ else }}{{ "}}" }}{{ end }}`, ""},
		"no template":                         {[]string{`{"a": "{{b}}", "c": "{{`}, `{{ b }}`, ""},
		"an assignment":                       {[]string{`{{ $a := b }}`}, `{{ $a := b }}{{ $a = b }}`, `{{ $a = b }}`},
	} {
		t.Run(why, func(t *testing.T) {
			own := Own{}
			for _, text := range test.own {
				own.Learn(text)
			}
			text, err := Parse(test.text)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if foreign := own.Foreign(text); foreign != nil {
				got = foreign.Text
			}
			if got != test.foreign {
				t.Errorf("got %q, want %q", got, test.foreign)
			}
		})
	}
}
