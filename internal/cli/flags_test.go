package cli

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// parse returns the flags after reading the arguments.
func parse(t *testing.T, args ...string) *Flags {
	t.Helper()
	flags := NewFlags()
	cmd := &cobra.Command{}
	flags.Register(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return flags
}

func TestDefaultsAreValid(t *testing.T) {
	options, err := parse(t).Complete(&bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if options.WatchesFile != "./watches.yaml" || options.AnsibleVerbosity != 2 || options.NoOwnerReferences || !options.MetricsSecure || options.TaskOutput == nil ||
		options.Cold {
		t.Errorf("got %+v", options)
	}
}

func TestCompleteReportsAllInvalidValues(t *testing.T) {
	for _, arg := range []string{
		"--ansible-verbosity=8", "--ansible-verbosity=-1", "--max-verbosity=8", "--max-concurrent-reconciles=0", "--proxy-port=70000", "--proxy-open-port=-1",
		"--reconcile-period=-1s", "--run-idle-timeout=-1s", "--graceful-shutdown-timeout=-1s", "--max-backoff=10ms", "--ansible-log-events=Some", "--log-format=xml",
		"--ansible-args=--tags 'open", "--artifacts-max-bytes=-1", "--artifacts-max-bytes=1", "--artifacts-max-bytes=1023Ki",
	} {
		t.Run(arg, func(t *testing.T) {
			_, err := parse(t, arg, "--log-format=yaml").Complete(&bytes.Buffer{})
			name, _, _ := strings.Cut(arg, "=")
			if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "--log-format") {
				t.Errorf("want an error that names both flags, got %v", err)
			}
		})
	}
}

func TestMetricsAreSecureUnlessAtALoopbackAddress(t *testing.T) {
	for args, want := range map[string]struct{ secure, rbac bool }{
		"--metrics-bind-address=:8443":                                       {true, true},
		"--metrics-bind-address=0.0.0.0:8443":                                {true, true},
		"--metrics-bind-address=10.0.0.1:8443":                               {true, true},
		"--metrics-bind-address=0":                                           {true, true},
		"--metrics-bind-address=example.com:1":                               {true, true},
		"--metrics-bind-address=127.0.0.1:8080":                              {},
		"--metrics-bind-address=[::1]:8080":                                  {},
		"--metrics-bind-address=localhost:8080":                              {},
		"--metrics-addr=127.0.0.1:8080":                                      {},
		"--metrics-bind-address=127.0.0.1:8080 --metrics-secure":             {true, true},
		"--metrics-bind-address=127.0.0.1:8080 --metrics-require-rbac":       {true, true},
		"--metrics-bind-address=127.0.0.1:8080 --metrics-require-rbac=false": {true, false},
		"--metrics-bind-address=127.0.0.1:8080 --metrics-secure=false":       {false, true},
		"--metrics-secure=false --metrics-require-rbac=false":                {},
	} {
		options, err := parse(t, strings.Fields(args)...).Complete(&bytes.Buffer{})
		if err != nil || options.MetricsSecure != want.secure || options.MetricsRequireRBAC != want.rbac {
			t.Errorf("%s: got TLS %v, RBAC %v (error %v), want %+v", args, options.MetricsSecure, options.MetricsRequireRBAC, err, want)
		}
	}
}

func TestArgumentsForAnsible(t *testing.T) {
	for given, want := range map[string]string{
		"--vault-password-file /x":                   "--vault-password-file /x",
		"'--vault-password-file /x'":                 "--vault-password-file /x", // As scaffolds write it in YAML.
		`"--vault-password-file /x"`:                 "--vault-password-file /x",
		`'--extra-vars="a=b c"'`:                     `--extra-vars="a=b c"`,
		"'--tags' 'a b'":                             "'--tags' 'a b'",
		`--extra-vars '{"a": "b # c"}' --tags=it\'s`: `--extra-vars '{"a": "b # c"}' --tags=it\'s`,
		`--extra-vars "a='\"'"`:                      `--extra-vars "a='\"'"`,
		`--tags='\'`:                                 `--tags='\'`,
		"''":                                         "",
		"":                                           "",
	} {
		options, err := parse(t, "--ansible-args="+given).Complete(&bytes.Buffer{})
		if err != nil || options.AnsibleArgs != want {
			t.Errorf("%s: got %s (error %v), want %s", given, options.AnsibleArgs, err, want)
		}
	}
	for _, given := range []string{"'", `"a`, `a\`, `"a\"`, "'a' b'", `--tags "it's`} {
		if _, err := parse(t, "--ansible-args="+given).Complete(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "--ansible-args") {
			t.Errorf("%s: want an error that names the flag, got %v", given, err)
		}
	}
}

func TestArtifactsMaxBytesIsAQuantity(t *testing.T) {
	for arg, want := range map[string]int64{
		"--run-dir=/x": 1 << 30, "--artifacts-max-bytes=512Mi": 512 << 20, "--artifacts-max-bytes=0": -1, "--artifacts-max-bytes=0Gi": -1,
		"--artifacts-max-bytes=1Mi": 1 << 20, "--artifacts-max-bytes=5000000": 5_000_000, "--artifacts-max-bytes=1.5G": 1_500_000_000,
	} {
		options, err := parse(t, arg).Complete(&bytes.Buffer{})
		if err != nil || options.ArtifactsMaxBytes != want {
			t.Errorf("%s: got %d (error %v), want %d", arg, options.ArtifactsMaxBytes, err, want)
		}
	}
	cmd := &cobra.Command{}
	NewFlags().Register(cmd)
	if err := cmd.ParseFlags([]string{"--artifacts-max-bytes=many"}); err == nil {
		t.Error("got no error for what is no quantity")
	}
}

func TestLogFormats(t *testing.T) {
	for format, want := range map[string]string{"json": `"msg":"hello"`, "console": "INFO\thello"} {
		t.Run(format, func(t *testing.T) {
			var out bytes.Buffer
			options, err := parse(t, "--log-format="+format).Complete(&out)
			if err != nil {
				t.Fatal(err)
			}
			options.Logger.Info("hello")
			if !strings.Contains(out.String(), want) || (options.TaskOutput == nil) != (format == "json") {
				t.Errorf("JSON %v, printed %q", options.TaskOutput == nil, out.String())
			}
		})
	}
}

func TestZapEncoderSetsTheLogFormat(t *testing.T) {
	for args, wantJSON := range map[string]bool{"--zap-encoder=json": true, "--zap-encoder=console": false, "--zap-encoder=json --log-format=json": true} {
		options, err := parse(t, strings.Fields(args)...).Complete(&bytes.Buffer{})
		if err != nil || (options.TaskOutput == nil) != wantJSON {
			t.Errorf("%s: JSON %v, %v", args, options.TaskOutput == nil, err)
		}
	}
	if _, err := parse(t, "--zap-encoder=json", "--log-format=console").Complete(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "--zap-encoder") {
		t.Errorf("want an error for flags that contradict each other, got %v", err)
	}
}

func TestHelpShowsEveryFlagInAGroup(t *testing.T) {
	flags := NewFlags()
	cmd := &cobra.Command{Use: "run"}
	flags.Register(cmd)
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

// TestTheReferenceListsTheFlags compares the table of docs/reference-command-line.md with the flags.
func TestTheReferenceListsTheFlags(t *testing.T) {
	cmd := &cobra.Command{}
	NewFlags().Register(cmd)
	listed := map[string]string{}
	for _, row := range tableBelow(t, "../../docs/reference-command-line.md", "## Flags") {
		names, defaults := codeSpans(row[0]), codeSpans(row[1])
		for i, name := range names {
			listed[strings.TrimPrefix(name, "--")] = ""
			if len(defaults) == 1 || len(defaults) == len(names) {
				listed[strings.TrimPrefix(name, "--")] = defaults[min(i, len(defaults)-1)]
			}
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden && f.Deprecated == "" {
			return // For tests alone.
		}
		said, ok := listed[f.Name]
		if !ok {
			t.Errorf("the reference does not list --%s", f.Name)
		}
		plain := strings.TrimSuffix(strings.TrimSuffix(f.DefValue, "0s"), "0m") // 10h0m0s
		if stated := said != "" && strings.Trim(f.DefValue, "[]") != ""; stated && said != f.DefValue && said != plain && !strings.Contains(said, "$TMPDIR") {
			t.Errorf("the reference says that --%s is %s, its default is %s", f.Name, said, f.DefValue)
		}
		delete(listed, f.Name)
	})
	if len(listed) > 0 {
		t.Errorf("the reference lists flags that do not exist: %q", listed)
	}
}

// tableBelow returns the rows of the first table below the heading of a Markdown file.
func tableBelow(t *testing.T, file, heading string) [][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut(string(text), "\n"+heading+"\n")
	_, table, underlined := strings.Cut(below, "\n|---")
	if !found || !underlined {
		t.Fatalf("%s has no table below %q", file, heading)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var rows [][]string
	for _, line := range strings.Split(table, "\n")[1:] {
		rows = append(rows, strings.Split(strings.Trim(line, "|"), "|"))
	}
	return rows
}

// codeSpans returns the texts between backquotes.
func codeSpans(text string) []string {
	var spans []string
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			spans = append(spans, part)
		}
	}
	return spans
}

func TestNoLogLineIsDropped(t *testing.T) {
	const lines = 500
	var out bytes.Buffer
	options, err := parse(t).Complete(&out)
	if err != nil {
		t.Fatal(err)
	}
	for range lines {
		options.Logger.Info("task")
		options.Logger.V(1).Info("for debugging")
	}
	if got := strings.Count(out.String(), "\n"); got != lines {
		t.Errorf("want %d lines, got %d", lines, got)
	}
}

// TestWarningsHaveALevelOfTheirOwn: alerts on the level see them.
func TestWarningsHaveALevelOfTheirOwn(t *testing.T) {
	for args, want := range map[string]string{
		"--log-format=console": "WARN\tWARNING: it is odd", "--log-format=json": `{"level":"warn"`, "--zap-log-level=error": "",
	} {
		var out bytes.Buffer
		options, err := parse(t, args).Complete(&out)
		if err != nil {
			t.Fatal(err)
		}
		options.Logger.WithValues("a", 1).Info("WARNING: it is odd", "b", 2)
		if !strings.Contains(out.String(), want) || (out.Len() == 0) != (want == "") {
			t.Errorf("%s: want %q, got %q", args, want, out.String())
		}
	}
}

func TestLogLevels(t *testing.T) {
	for name, test := range map[string]struct{ args, want string }{
		"the usual one":             {"", "INFO"},
		"debug":                     {"--zap-log-level=debug", "INFO DEBUG"},
		"errors alone":              {"--zap-log-level=error", ""},
		"development logs more":     {"--zap-devel", "INFO DEBUG"},
		"but not more than is said": {"--zap-devel --zap-log-level=info", "INFO"},
		"a number":                  {"--zap-log-level=2", "INFO DEBUG LEVEL(-2)"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			options, err := parse(t, strings.Fields(test.args)...).Complete(&out)
			if err != nil {
				t.Fatal(err)
			}
			for v := range 4 {
				options.Logger.V(v).Info("hello")
			}
			var levels []string
			for line := range strings.Lines(out.String()) {
				levels = append(levels, strings.Split(line, "\t")[1])
			}
			if got := strings.Join(levels, " "); got != test.want {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}

func TestTimeEncodings(t *testing.T) {
	for args, want := range map[string]string{
		"--log-format=json":                                `^{"level":"info","ts":"\d{4}-\d\d-\d\dT`,
		"--log-format=json --zap-time-encoding=epoch":      `^{"level":"info","ts":\d+\.\d+,`,
		"--log-format=console --zap-time-encoding=rfc3339": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)\t`,
	} {
		t.Run(args, func(t *testing.T) {
			var out bytes.Buffer
			options, err := parse(t, strings.Fields(args)...).Complete(&out)
			if err != nil {
				t.Fatal(err)
			}
			options.Logger.Info("hello")
			if !regexp.MustCompile(want).MatchString(out.String()) {
				t.Errorf("want %s, got %q", want, out.String())
			}
		})
	}
}

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	root := &cobra.Command{Use: "manager"}
	root.AddCommand(NewVersionCommand(Build{Version: "v1.2.3", Commit: "abc"}))
	root.SetOut(&out)
	root.SetArgs([]string{"version"})
	if err := root.ExecuteContext(context.Background()); err != nil || out.String() != "manager v1.2.3 (commit abc)\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}
