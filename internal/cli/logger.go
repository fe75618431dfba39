package cli

import (
	"fmt"
	"io"

	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/ensign-operator/ensign/internal/operator"
)

// setLogger makes the logger that the flags describe. The blocks of tasks share
// its locked stream, so that no two lines ever mix.
func (f *runFlags) setLogger(o *operator.Options, out io.Writer) error {
	stream := zapcore.Lock(zapcore.AddSync(out))
	settings := []zap.Opts{zap.UseFlagOptions(&f.zap), zap.WriteTo(stream)}
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
		settings = append(settings, zap.JSONEncoder(isoTime))
	case "console":
		settings = append(settings, zap.ConsoleEncoder(isoTime))
	default:
		return fmt.Errorf("--log-format=%s: allowed are console and json", format)
	}
	o.Logger = zap.New(settings...)
	o.Blocks = stream
	ctrl.SetLogger(o.Logger)
	klog.SetLogger(o.Logger.WithName("client-go"))
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

func isoTime(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.ISO8601TimeEncoder }
