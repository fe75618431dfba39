package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"

	"github.com/ensign-operator/ensign/internal/observe/eventlog"
	"github.com/ensign-operator/ensign/internal/observe/terminal"
)

// prettyEncoder is the format of the manager's own lines at a terminal: the time, the message in
// the colour of its level, and the values as key=value. Lines of runs do not come here; see
// eventlog.Screen.
type prettyEncoder struct {
	*zapcore.MapObjectEncoder // has the values of the logger, for all of its lines

	screen  eventlog.Screen
	buffers buffer.Pool
}

func newPrettyEncoder(screen eventlog.Screen) *prettyEncoder {
	return &prettyEncoder{MapObjectEncoder: zapcore.NewMapObjectEncoder(), screen: screen, buffers: buffer.NewPool()}
}

// Clone implements zapcore.Encoder.
func (p *prettyEncoder) Clone() zapcore.Encoder {
	clone := newPrettyEncoder(p.screen)
	maps.Copy(clone.Fields, p.Fields)
	return clone
}

// EncodeEntry implements zapcore.Encoder.
func (p *prettyEncoder) EncodeEntry(entry zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	line := p.buffers.Get()
	paint := p.screen.Palette.Paint
	line.AppendString(paint(terminal.Faint, p.screen.Time()) + " " + paint(levelColor(entry), terminal.OneLine(entry.Message)))
	var long strings.Builder
	values := p.Clone().(*prettyEncoder) //nolint:forcetypeassert // It is one.
	names := make([]string, 0, len(p.Fields)+len(fields))
	for name := range p.Fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, field := range fields {
		field.AddTo(values)
		if field.Type != zapcore.SkipType && !slices.Contains(names, field.Key) {
			names = append(names, field.Key)
		}
	}
	for _, name := range names {
		text := shown(values.Fields[name])
		if strings.Contains(text, "\n") {
			long.WriteString(paint(terminal.Faint, terminal.Indent("         ", name+":\n"+terminal.Indent("  ", text))) + "\n")
			continue
		}
		line.AppendString("  " + paint(terminal.Faint, terminal.OneLine(name)+"=") + paint(terminal.Plain, text))
	}
	line.AppendString("\n" + long.String())
	if entry.Stack != "" {
		line.AppendString(paint(terminal.Faint, terminal.Indent("         ", entry.Stack)) + "\n")
	}
	return line, nil
}

func levelColor(entry zapcore.Entry) terminal.Color {
	switch {
	case entry.Level >= zapcore.ErrorLevel:
		return terminal.Red
	case entry.Level == zapcore.WarnLevel, strings.HasPrefix(entry.Message, "WARNING"):
		return terminal.Yellow
	case entry.Level < zapcore.InfoLevel:
		return terminal.Faint
	}
	return terminal.Plain
}

// shown returns a value of a line as people read it: a text as it is, quoted where one could not
// tell where it ends, anything else as JSON.
func shown(value any) string {
	switch value := value.(type) {
	case string:
		if value == "" || strings.ContainsAny(value, " \t\"=") && !strings.Contains(value, "\n") {
			return fmt.Sprintf("%q", value)
		}
		return value
	case fmt.Stringer:
		return value.String()
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
