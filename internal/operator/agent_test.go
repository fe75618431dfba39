package operator

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/pkg/options"
)

// A run in a pod has the settings of the manager, the environment of the pod, and nothing of what is
// the agent's.
func TestAnAgentRunsAsTheManagerWould(t *testing.T) {
	project, venv := t.TempDir(), t.TempDir()
	for _, name := range []string{"python3", "ansible-runner", "ansible-playbook"} {
		path := filepath.Join(venv, "bin", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(project, "ansible.cfg"), []byte("[defaults]\nroles_path = own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("VIRTUAL_ENV", venv)
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("ANSIBLE_GATHERING", "explicit")
	t.Setenv(wire.EnvKey, "key")
	settings := config.Of(options.Options{Dir: project, AnsibleArgs: "--diff", DropEnv: []string{"SECRET"}, RunIdleTimeout: time.Minute, AnsibleCollectionsPath: "collections"}, logr.Discard())
	settings.WatchesFile = "watches.yaml"
	made, end, err := newAgentRunner(t.Context(), agentSettingsOf(settings), []string{"ENSIGN_USER_METRICS=url"}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	r, ok := made.(*runner.Runner)
	if !ok {
		t.Fatalf("got %T", made)
	}
	for name, good := range map[string]bool{
		"the roles of ansible.cfg": slices.Contains(r.RolesPath, filepath.Join(project, "own")),
		"the collections":          slices.Equal(r.CollectionsPath, []string{filepath.Join(project, "collections")}),
		"the arguments":            r.Args == "--diff" && r.IdleTimeout == time.Minute && r.SkipFacts,
		"ansible.cfg itself":       slices.Contains(r.Env, "ANSIBLE_CONFIG="+filepath.Join(project, "ansible.cfg")),
		"the URL for metrics":      slices.Contains(r.Env, "ENSIGN_USER_METRICS=url"),
		"no variable of the agent": slices.Contains(r.DropEnv, wire.EnvKey) && slices.Contains(r.DropEnv, wire.EnvAddress) && slices.Contains(r.DropEnv, "SECRET"),
		"no server for warm runs":  r.Launcher == nil,
		"its own directory":        strings.HasPrefix(r.Root.Path(), os.TempDir()),
	} {
		if !good {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if err := r.Ready(context.Background()); err == nil {
		t.Error("an environment that nobody has proved is taken")
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestAnAgentThatAPersonStartsSaysWhatItIsFor(t *testing.T) {
	if err := RunAgent(t.Context(), logr.Discard(), nil); err == nil || !strings.Contains(err.Error(), wire.EnvAddress) {
		t.Errorf("got %v", err)
	}
}

// A pod whose image has no chart-exec says so, and leaves nothing.
func TestAnAgentWithoutChartExecSaysSo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	settings := agentSettingsOf(config.Of(options.Options{Dir: t.TempDir()}, logr.Discard()))
	settings.Chart = true
	_, _, err := newAgentRunner(t.Context(), settings, nil, logr.Discard())
	if err == nil || !strings.Contains(err.Error(), "chart-exec") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
