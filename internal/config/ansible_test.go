package config

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/pkg/options"
	"github.com/ensign-operator/ensign/test/harness/scratch"
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
		"identities of vaults, in the file": {
			files: map[string]string{"ansible.cfg": "[defaults]\nvault_identity_list = dev@secrets/dev.txt,\n  prod@~/prod,\n  secrets/plain, ask@prompt, prompt_ask_vault_pass\n"},
			want:  Environment{"ANSIBLE_CONFIG": "PROJECT/ansible.cfg", "ANSIBLE_VAULT_IDENTITY_LIST": "dev@PROJECT/secrets/dev.txt,prod@~/prod,PROJECT/secrets/plain,ask@prompt,prompt_ask_vault_pass"},
		},
		"identities of vaults, in the variable": {
			files: map[string]string{"ansible.cfg": "[defaults]\nvault_identity_list = dev@secrets/dev.txt"},
			env:   Environment{"ANSIBLE_VAULT_IDENTITY_LIST": "x@/abs, y@rel"},
			want:  Environment{"ANSIBLE_CONFIG": "PROJECT/ansible.cfg", "ANSIBLE_VAULT_IDENTITY_LIST": "x@/abs,y@PROJECT/rel"},
		},
		"paths of a file in another directory, that begin in the working one": {
			files: map[string]string{"etc/own.cfg": "[defaults]\nvault_identity_list = v@v\nlibrary = {{CWD}}/a:b\nfilter_plugins = f\ninterpreter_python = auto\n[ssh_connection]\nssh_args = -C -F ssh.cfg -o ControlMaster=auto -i /k -i ~/k\n"},
			env:   Environment{"ANSIBLE_CONFIG": "etc/own.cfg"},
			want: Environment{
				"ANSIBLE_CONFIG": "PROJECT/etc/own.cfg", "ANSIBLE_VAULT_IDENTITY_LIST": "v@PROJECT/v", "ANSIBLE_LIBRARY": "PROJECT/a:PROJECT/etc/b",
				"ANSIBLE_SSH_ARGS": "-C -F PROJECT/ssh.cfg -o ControlMaster=auto -i /k -i ~/k",
			},
		},
		"each variable with a path": {
			env: Environment{
				"ANSIBLE_PRIVATE_KEY_FILE": "k", "ANSIBLE_LOG_PATH": "logs/a", "ANSIBLE_BECOME_PASSWORD_FILE": "b", "ANSIBLE_HOME": "h", "ANSIBLE_CALLBACK_TREE_DIR": "{{CWD}}/t",
				"ANSIBLE_SSH_CONTROL_PATH": "%(directory)s/x", "ANSIBLE_PYTHON_INTERPRETER": "venv/bin/python", "ANSIBLE_REMOTE_TEMP": "tmp", "ANSIBLE_SSH_COMMON_ARGS": "-F s", "LOG_PATH": "l",
			},
			want: Environment{
				"ANSIBLE_PRIVATE_KEY_FILE": "PROJECT/k", "ANSIBLE_LOG_PATH": "PROJECT/logs/a", "ANSIBLE_BECOME_PASSWORD_FILE": "PROJECT/b", "ANSIBLE_HOME": "PROJECT/h", "ANSIBLE_CALLBACK_TREE_DIR": "PROJECT/t",
				"ANSIBLE_SSH_CONTROL_PATH": "%(directory)s/x", "ANSIBLE_PYTHON_INTERPRETER": "PROJECT/venv/bin/python", "ANSIBLE_REMOTE_TEMP": "tmp", "ANSIBLE_SSH_COMMON_ARGS": "-F PROJECT/s", "LOG_PATH": "l",
			},
		},
	} {
		t.Run(why, func(t *testing.T) {
			dir := t.TempDir()
			scratch.Write(t, dir, test.files)
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
