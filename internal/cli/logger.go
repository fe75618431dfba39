package cli

import (
	"fmt"
	"io"
	"math"
	"strings"

	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/observe/eventlog"
	"github.com/ensign-operator/ensign/internal/observe/terminal"
)

// setLogger sets the logger that the flags describe. The blocks with the output of tasks
// go to the same locked stream, so that lines never mix.
func (f *Flags) setLogger(o *config.Options, out io.Writer) error {
	stream := zapcore.Lock(zapcore.AddSync(out))
	settings := []zap.Opts{
		zap.UseFlagOptions(&f.zap), zap.WriteTo(stream),
		// zap.New samples the lines unless the level is below debug: of more than 100 lines a
		// second with the same message, such as those of tasks, it would drop most.
		// IncreaseLevel then sets the level that the flags ask for.
		zap.Level(zapcore.Level(math.MinInt8)), zap.RawZapOpts(uberzap.IncreaseLevel(f.logLevel()), uberzap.WrapCore(func(core zapcore.Core) zapcore.Core { return warnings{core} })),
	}
	if f.zap.StacktraceLevel == nil {
		// A stack trace does not help users; --zap-stacktrace-level switches it on again.
		settings = append(settings, zap.StacktraceLevel(uberzap.NewAtomicLevelAt(zapcore.DPanicLevel)))
	}
	o.TaskOutput = stream
	format, err := f.format(terminal.Is(out))
	if err != nil {
		return err
	}
	switch format {
	case "pretty":
		screen := &eventlog.Screen{Out: stream, Palette: terminal.For(out), Shared: true}
		o.TaskOutput = screen
		settings = append(settings, zap.Encoder(newPrettyEncoder(*screen)))
	case "json":
		o.TaskOutput = nil // It stands in the lines.
		settings = append(settings, zap.JSONEncoder(f.setTimeEncoder))
	case "console":
		settings = append(settings, zap.ConsoleEncoder(f.setTimeEncoder))
	default:
		return fmt.Errorf("--log-format=%s: allowed are pretty, console and json", format)
	}
	o.Logger = zap.New(settings...)
	return nil
}

// warnings gives lines that begin with WARNING the level of warnings, which logr does not know, so
// that alerts on the level see them.
type warnings struct{ zapcore.Core }

func (w warnings) With(fields []zapcore.Field) zapcore.Core { return warnings{w.Core.With(fields)} }

func (w warnings) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.Level == zapcore.InfoLevel && strings.HasPrefix(entry.Message, "WARNING") {
		entry.Level = zapcore.WarnLevel
	}
	return w.Core.Check(entry, checked)
}

// format returns the log format from --log-format, or from the older flag --zap-encoder if
// only that is given, or else that for people if one reads it at a terminal.
func (f *Flags) format(atTerminal bool) (string, error) {
	encoder, format := f.logFlags.Lookup("zap-encoder"), f.logFlags.Lookup("log-format")
	switch {
	case !encoder.Changed && !format.Changed && atTerminal:
		return "pretty", nil
	case !encoder.Changed || encoder.Value.String() == f.logFormat:
		return f.logFormat, nil
	case format.Changed:
		return "", fmt.Errorf("--log-format=%s contradicts --zap-encoder=%s: give one of them", f.logFormat, encoder.Value)
	default:
		return encoder.Value.String(), nil
	}
}

// setTimeEncoder sets the format of times in log lines.
func (f *Flags) setTimeEncoder(c *zapcore.EncoderConfig) {
	c.EncodeTime = zapcore.ISO8601TimeEncoder
	if f.zap.TimeEncoder != nil {
		c.EncodeTime = f.zap.TimeEncoder
	}
}

// logLevel returns the level of --zap-log-level, or else the default.
func (f *Flags) logLevel() zapcore.LevelEnabler {
	switch {
	case f.zap.Level != nil:
		return f.zap.Level
	case f.zap.Development:
		return zapcore.DebugLevel
	default:
		return zapcore.InfoLevel
	}
}
