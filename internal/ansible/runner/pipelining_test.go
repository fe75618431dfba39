package runner

import (
	"maps"
	"os"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/cfgfile"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func TestModulesArePipelinedUnlessTheOwnerHasChosen(t *testing.T) {
	tests := map[string]struct {
		env    map[string]string // HOME is added
		files  map[string]string // below HOME
		system bool              // what this machine's own ansible.cfg says is wanted
		want   bool
	}{
		"nobody has chosen": {system: true},
		"another setting":   {files: map[string]string{".ansible.cfg": "[defaults]\nforks = 3\n"}, want: true},
		"by the variable":   {env: map[string]string{"ANSIBLE_PIPELINING": "true"}},
		"against, by the variable": {
			env: map[string]string{"ANSIBLE_PIPELINING": "0"},
		},
		"in the home directory": {files: map[string]string{".ansible.cfg": "[defaults]\nforks=3\npipelining = False\n"}},
		"in the section of connections, and in capitals": {
			files: map[string]string{".ansible.cfg": "[connection]\n  Pipelining:yes\n"},
		},
		"for SSH only": {files: map[string]string{".ansible.cfg": "[defaults]\n[ssh_connection]\npipelining = True\n"}, want: true},
		"in a comment": {files: map[string]string{".ansible.cfg": "[defaults]\n# pipelining = True\n; pipelining=1\n"}, want: true},
		"in the named file": {
			env: map[string]string{"ANSIBLE_CONFIG": "~/a.cfg"}, files: map[string]string{"a.cfg": "[defaults]\npipelining = True\n"},
		},
		"in the named directory": {
			env: map[string]string{"ANSIBLE_CONFIG": "$HOME/d"}, files: map[string]string{"d/ansible.cfg": "[defaults]\npipelining = True\n"},
		},
		"in a file that the named one hides": {
			env:   map[string]string{"ANSIBLE_CONFIG": "${HOME}/a.cfg"},
			files: map[string]string{"a.cfg": "[defaults]\n", ".ansible.cfg": "[defaults]\npipelining = True\n"}, want: true,
		},
		"the named file is not there": {
			env: map[string]string{"ANSIBLE_CONFIG": "/nowhere.cfg"}, files: map[string]string{".ansible.cfg": "[defaults]\npipelining = True\n"},
		},
	}
	for why, test := range tests {
		t.Run(why, func(t *testing.T) {
			env := map[string]string{"HOME": t.TempDir()}
			maps.Copy(env, test.env)
			scratch.Write(t, env["HOME"], test.files)
			want := test.want
			if test.system {
				_, chosen := cfgfile.Find(nil, os.ReadFile).Value("pipelining", "defaults", "connection") // There is none, as a rule.
				want = !chosen
			}
			if got := usePipelining(env); got != want {
				t.Errorf("got %t", got)
			}
		})
	}
}
