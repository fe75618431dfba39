package config

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/pkg/options"
)

func TestAnsibleSettings(t *testing.T) {
	const callbacks = "[defaults]\ncallback_plugins = callbacks\n"
	for why, test := range map[string]struct {
		watches   string
		files     map[string]string // below the project's directory
		env, want Environment       // PROJECT stands for that directory
	}{
		"without a file nothing is set": {},
		"the file beside the watches is Ansible's": {
			files: map[string]string{"ansible.cfg": ""}, want: Environment{"ANSIBLE_CONFIG": "PROJECT/ansible.cfg"},
		},
		"beside the watches, not in the working directory": {
			watches: "deploy/watches.yaml", files: map[string]string{"ansible.cfg": "", "deploy/ansible.cfg": ""},
			want: Environment{"ANSIBLE_CONFIG": "PROJECT/deploy/ansible.cfg"},
		},
		"a directory of that name is none": {files: map[string]string{"ansible.cfg/x": ""}},
		"the variable goes first, and is relative to the project": {
			files: map[string]string{"ansible.cfg": "", "own.cfg": callbacks}, env: Environment{"ANSIBLE_CONFIG": "own.cfg"},
			want: Environment{"ANSIBLE_CONFIG": "PROJECT/own.cfg", "ANSIBLE_CALLBACK_PLUGINS": "PROJECT/callbacks"},
		},
		"callbacks of the file are not lost to ansible-runner's": {
			files: map[string]string{"ansible.cfg": callbacks},
			want:  Environment{"ANSIBLE_CONFIG": "PROJECT/ansible.cfg", "ANSIBLE_CALLBACK_PLUGINS": "PROJECT/callbacks"},
		},
		"those of the variable go first": {
			files: map[string]string{"ansible.cfg": callbacks}, env: Environment{"ANSIBLE_CALLBACK_PLUGINS": "here:/there"},
			want: Environment{"ANSIBLE_CONFIG": "PROJECT/ansible.cfg", "ANSIBLE_CALLBACK_PLUGINS": "PROJECT/here:/there"},
		},
		"relative paths begin in the project": {
			env:  Environment{"ANSIBLE_VAULT_PASSWORD_FILE": ".vault", "ANSIBLE_FILTER_PLUGINS": "filters:~/f:$X/f", "ANSIBLE_RUN_VARS_PLUGINS": "start", "ANSIBLE_FORKS": "5"},
			want: Environment{"ANSIBLE_VAULT_PASSWORD_FILE": "PROJECT/.vault", "ANSIBLE_FILTER_PLUGINS": "PROJECT/filters:~/f:$X/f", "ANSIBLE_RUN_VARS_PLUGINS": "start", "ANSIBLE_FORKS": "5"},
		},
	} {
		t.Run(why, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range test.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if test.watches == "" {
				test.watches = "watches.yaml"
			}
			want, env := Environment{"HOME": dir}, Environment{"HOME": dir}
			maps.Copy(env, test.env)
			for name, value := range test.want {
				want[name] = strings.ReplaceAll(value, "PROJECT", dir)
			}
			got := Options{Options: options.Options{Dir: dir}, WatchesFile: test.watches, Env: env}.WithAnsibleSettings().Env
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, changed := env["ANSIBLE_CONFIG"]; changed && test.env["ANSIBLE_CONFIG"] == "" {
				t.Error("the environment that was given is changed")
			}
		})
	}
}
