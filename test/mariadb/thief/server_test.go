package thief_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/mariadb/thief"
)

const treasure = "what only this machine's user may read"

// The server is worth something as a test of others only if it robs who lets it.
func TestAClientThatAllowsItIsRobbed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "treasure")
	if err := os.WriteFile(file, []byte(treasure), 0o600); err != nil {
		t.Fatal(err)
	}
	for allowed, want := range map[string][]string{"1": {treasure}, "0": nil} {
		server, err := thief.Start(thief.Options{Wants: file, Version: "11.8.0-MariaDB", Honest: map[string][][]string{
			"polite": {{"a", "b"}, {"1", "two"}},
			"SET":    {},
		}})
		if err != nil {
			t.Fatal(err)
		}
		run := exec.CommandContext(t.Context(), "../../../.dev/mariadb/bin/mariadb", "--no-defaults", "--protocol=tcp", "--host=127.0.0.1",
			"--port="+strconv.Itoa(server.Port), "--user=root", "--password=any", "--skip-ssl", "--local-infile="+allowed, "--batch", "--force")
		run.Stdin = strings.NewReader("SET a = 1; SELECT 'polite'; SELECT 1;")
		out, err := run.CombinedOutput()
		if !strings.Contains(string(out), "1\ttwo") {
			t.Errorf("the honest answer is missing: %v: %s", err, out)
		}
		if diff := cmp.Diff([]string{"SELECT 1"}, server.Asked()); diff != "" {
			t.Errorf("asked at other statements (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, server.Stolen()); diff != "" {
			t.Errorf("--local-infile=%s: stolen (-want +got):\n%s\n%s", allowed, diff, out)
		}
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}
}
