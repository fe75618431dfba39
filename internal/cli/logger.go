package cli

import (
	"fmt"
	"io"
	"math"

	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/ensign-operator/ensign/internal/config"
)

// setLogger makes the logger that the flags describe. The blocks of tasks share
// its locked stream, so that no two lines ever mix.
func (f *runFlags) setLogger(o *config.Options, out io.Writer) error {
	stream := zapcore.Lock(zapcore.AddSync(out))
	settings := []zap.Opts{
		zap.UseFlagOptions(&f.zap), zap.WriteTo(stream),
		// Where all levels are on, nothing is sampled: of more than 100 lines a second
		// with the same message, such as a task's, most would be dropped.
		zap.Level(zapcore.Level(math.MinInt8)), zap.RawZapOpts(uberzap.IncreaseLevel(f.level())),
	}
	if f.zap.StacktraceLevel == nil {
		// A stack trace tells users nothing; --zap-stacktrace-level brings it back.
		settings = append(settings, zap.StacktraceLevel(uberzap.NewAtomicLevelAt(zapcore.DPanicLevel)))
	}
	format, err := f.format()
	if err != nil {
		return err
	}
	switch format {
	case "json":
		o.JSONLogs = true
		settings = append(settings, zap.JSONEncoder(f.times))
	case "console":
		settings = append(settings, zap.ConsoleEncoder(f.times))
	default:
		return fmt.Errorf("--log-format=%s: allowed are console and json", format)
	}
	o.Logger = zap.New(settings...)
	o.Blocks = stream
	return nil
}

// format is --log-format, or what --zap-encoder says alone: that flag is older
// and chooses the same.
func (f *runFlags) format() (string, error) {
	encoder, own := f.logFlags.Lookup("zap-encoder"), f.logFlags.Lookup("log-format")
	switch {
	case !encoder.Changed || encoder.Value.String() == f.logFormat:
		return f.logFormat, nil
	case own.Changed:
		return "", fmt.Errorf("--log-format=%s contradicts --zap-encoder=%s: give one of them", f.logFormat, encoder.Value)
	default:
		return encoder.Value.String(), nil
	}
}

// times sets how times are written.
func (f *runFlags) times(c *zapcore.EncoderConfig) {
	c.EncodeTime = zapcore.ISO8601TimeEncoder
	if f.zap.TimeEncoder != nil {
		c.EncodeTime = f.zap.TimeEncoder
	}
}

// level is --zap-log-level, or the usual one.
func (f *runFlags) level() zapcore.LevelEnabler {
	switch {
	case f.zap.Level != nil:
		return f.zap.Level
	case f.zap.Development:
		return zapcore.DebugLevel
	default:
		return zapcore.InfoLevel
	}
}
