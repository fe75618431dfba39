package check

import (
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/chart/describe"
	"github.com/ensign-operator/ensign/internal/watches"
)

func TestOverridesOfValuesThatTheChartDoesNotHave(t *testing.T) {
	for key, message := range map[string]string{
		"image.tag": "", "image": "", "global.x": "", "mentioned.x": "", "ports[0].name": "",
		"imag.tag": "no value imag; did you mean image?", "nothing": "no value nothing", "port[0].name": "no value port; did you mean ports?",
	} {
		t.Run(key, func(t *testing.T) {
			p := project(t, thing(), map[string]string{})
			w := &chartBackend{
				chart: &watches.Chart{Overrides: []watches.Override{{Key: key, Value: "1", Line: 3}}},
				loaded: &describe.Chart{
					Name: "web", Defaults: map[string]any{"image": map[string]any{}, "ports": []any{}},
					Files: []describe.File{{Name: "templates/a.yaml", Data: []byte("{{ .Values.mentioned }}")}},
				},
			}
			w.unknownOverrides(p, source.Position{File: p.watchesFile, Line: 1, Column: 1})
			if message == "" {
				want(t, p)
				return
			}
			want(t, p, "watches.yaml:3 warning chart-values")
			if !strings.HasSuffix(p.findings[0].Message, message) {
				t.Errorf("want %q, got %q", message, p.findings[0].Message)
			}
		})
	}
}
