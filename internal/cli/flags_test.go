package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// parse gives the flags after reading the arguments.
func parse(t *testing.T, args ...string) *runFlags {
	t.Helper()
	flags := newRunFlags()
	cmd := &cobra.Command{}
	flags.register(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return flags
}

func TestDefaultsAreValid(t *testing.T) {
	options, err := parse(t).complete(&bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if options.WatchesFile != "./watches.yaml" || options.AnsibleVerbosity != 2 || !options.InjectOwnerRef || !options.MetricsSecure || options.JSONLogs {
		t.Errorf("got %+v", options)
	}
}

func TestValuesThatAreNotAllowedAreAllNamed(t *testing.T) {
	for _, arg := range []string{
		"--ansible-verbosity=8", "--ansible-verbosity=-1", "--max-verbosity=8", "--max-concurrent-reconciles=0", "--proxy-port=70000",
		"--reconcile-period=-1s", "--run-idle-timeout=-1s", "--graceful-shutdown-timeout=-1s", "--max-backoff=10ms", "--ansible-log-events=Some", "--log-format=xml",
		"--ansible-args=--tags 'open", "--artifacts-max-bytes=-1", "--artifacts-max-bytes=1", "--artifacts-max-bytes=1023Ki",
	} {
		t.Run(arg, func(t *testing.T) {
			_, err := parse(t, arg, "--log-format=yaml").complete(&bytes.Buffer{})
			name, _, _ := strings.Cut(arg, "=")
			if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "--log-format") {
				t.Errorf("want an error that names both flags, got %v", err)
			}
		})
	}
}

func TestBytesAreWrittenAsQuantities(t *testing.T) {
	for arg, want := range map[string]int64{
		"--run-dir=/x": 1 << 30, "--artifacts-max-bytes=512Mi": 512 << 20, "--artifacts-max-bytes=0": 0, "--artifacts-max-bytes=0Gi": 0,
		"--artifacts-max-bytes=1Mi": 1 << 20, "--artifacts-max-bytes=5000000": 5_000_000, "--artifacts-max-bytes=1.5G": 1_500_000_000,
	} {
		options, err := parse(t, arg).complete(&bytes.Buffer{})
		if err != nil || options.ArtifactsMaxBytes != want {
			t.Errorf("%s: got %d (error %v), want %d", arg, options.ArtifactsMaxBytes, err, want)
		}
	}
	cmd := &cobra.Command{}
	newRunFlags().register(cmd)
	if err := cmd.ParseFlags([]string{"--artifacts-max-bytes=many"}); err == nil {
		t.Error("got no error for what is no quantity")
	}
}

func TestLogFormats(t *testing.T) {
	for format, want := range map[string]string{"json": `"msg":"hello"`, "console": "INFO\thello"} {
		t.Run(format, func(t *testing.T) {
			var out bytes.Buffer
			options, err := parse(t, "--log-format="+format).complete(&out)
			if err != nil {
				t.Fatal(err)
			}
			options.Logger.Info("hello")
			if !strings.Contains(out.String(), want) || options.JSONLogs != (format == "json") {
				t.Errorf("JSON %v, printed %q", options.JSONLogs, out.String())
			}
		})
	}
}

func TestTheOlderFlagForTheFormat(t *testing.T) {
	for args, wantJSON := range map[string]bool{"--zap-encoder=json": true, "--zap-encoder=console": false, "--zap-encoder=json --log-format=json": true} {
		options, err := parse(t, strings.Fields(args)...).complete(&bytes.Buffer{})
		if err != nil || options.JSONLogs != wantJSON {
			t.Errorf("%s: JSON %v, %v", args, options.JSONLogs, err)
		}
	}
	if _, err := parse(t, "--zap-encoder=json", "--log-format=console").complete(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "--zap-encoder") {
		t.Errorf("want an error for flags that contradict each other, got %v", err)
	}
}

func TestHelpShowsEveryFlagInAGroup(t *testing.T) {
	flags := newRunFlags()
	cmd := &cobra.Command{Use: "run"}
	flags.register(cmd)
	usage := flags.usage(cmd)
	for _, group := range flags.groups {
		if !strings.Contains(usage, "\n"+group.title+":\n") {
			t.Errorf("no group %q", group.title)
		}
	}
	for _, name := range []string{"--watches-file", "--max-backoff", "--proxy-port", "--metrics-require-rbac", "--leader-elect ", "--zap-log-level"} {
		if !strings.Contains(usage, name) {
			t.Errorf("no flag %s", name)
		}
	}
}

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	root := newVersionCommand(Build{Version: "v1.2.3", Commit: "abc"})
	root.SetOut(&out)
	if err := root.ExecuteContext(context.Background()); err != nil || out.String() != "ensign v1.2.3 (commit abc)\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}
