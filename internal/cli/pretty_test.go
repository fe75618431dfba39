package cli

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/ensign-operator/ensign/internal/observe/eventlog"
	"github.com/ensign-operator/ensign/internal/observe/terminal"
)

func TestPrettyLines(t *testing.T) {
	var out bytes.Buffer
	options, err := parse(t, "--log-format=pretty").Complete(&out)
	if err != nil {
		t.Fatal(err)
	}
	log := options.Logger.WithName("x").WithValues("gvk", "a/v1, Kind=B")
	log.Info("hello", "count", 2, "name", "plain", "empty", "")
	log.Info("WARNING: forged\x1b[2J", "text", "a\n12:00:00 forged\x1b]0;t\a")
	log.Error(errors.New("it broke"), "failed", "map", map[string]int{"a": 1})
	log.V(1).Info("for debugging")
	got := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `).ReplaceAllString(out.String(), "TIME ")
	want := `TIME hello  gvk="a/v1, Kind=B"  count=2  name=plain  empty=""
TIME WARNING: forged\x1b[2J  gvk="a/v1, Kind=B"
         text:
           a
           12:00:00 forged\x1b]0;t\x07
TIME failed  gvk="a/v1, Kind=B"  map={"a":1}  error="it broke"
`
	if got != want {
		t.Errorf("want\n%s\ngot\n%s", want, got)
	}
}

func TestPrettyIsForTerminals(t *testing.T) {
	for name, test := range map[string]struct {
		args       string
		atTerminal bool
		want       string
	}{
		"people":                              {"", true, "pretty"},
		"pods":                                {"", false, "console"},
		"what is said counts at a terminal":   {"--log-format=console", true, "console"},
		"the older flag counts at a terminal": {"--zap-encoder=json", true, "json"},
		"pretty in a pipe, for whoever asks":  {"--log-format=pretty", false, "pretty"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parse(t, strings.Fields(test.args)...).format(test.atTerminal); got != test.want || err != nil {
				t.Errorf("want %s, got %s, %v", test.want, got, err)
			}
		})
	}
}

func TestLevelsHaveColours(t *testing.T) {
	var out bytes.Buffer
	log := zapr.NewLogger(zap.New(zapcore.NewCore(newPrettyEncoder(eventlog.Screen{Palette: terminal.Palette{On: true}}), zapcore.AddSync(&out), zapcore.DebugLevel)))
	log.Info("as usual")
	log.Info("WARNING: look")
	log.V(1).Info("for debugging")
	log.Error(nil, "failed")
	got := regexp.MustCompile(`(?m)^\x1b\[2m\d\d:\d\d:\d\d\x1b\[0m `).ReplaceAllString(out.String(), "")
	if want := "as usual\n\x1b[33mWARNING: look\x1b[0m\n\x1b[2mfor debugging\x1b[0m\n\x1b[31mfailed\x1b[0m\n"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}
