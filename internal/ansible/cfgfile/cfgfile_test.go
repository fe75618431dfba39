package cfgfile

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reading plays files.
func reading(files map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if text, found := files[path]; found {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}
}

func TestFind(t *testing.T) {
	for why, test := range map[string]struct {
		config string
		files  []string
		want   string
	}{
		"none":                          {},
		"the named one comes first":     {"/p/a.cfg", []string{"/p/a.cfg", "/h/.ansible.cfg"}, "/p/a.cfg"},
		"in a named directory":          {"/p", []string{"/p/ansible.cfg"}, "/p/ansible.cfg"},
		"by a variable":                 {"${HOME}/a.cfg", []string{"/h/a.cfg"}, "/h/a.cfg"},
		"in the home directory":         {"~/a.cfg", []string{"/h/a.cfg"}, "/h/a.cfg"},
		"a named one that is not there": {"/p/a.cfg", []string{"/h/.ansible.cfg", "/etc/ansible/ansible.cfg"}, "/h/.ansible.cfg"},
		"the machine's":                 {"", []string{"/etc/ansible/ansible.cfg"}, "/etc/ansible/ansible.cfg"},
	} {
		t.Run(why, func(t *testing.T) {
			files := map[string]string{}
			for _, path := range test.files {
				files[path] = ""
			}
			if got := Find(map[string]string{"HOME": "/h", "ANSIBLE_CONFIG": test.config}, reading(files)); got.Path != test.want {
				t.Errorf("got %q, want %q", got.Path, test.want)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	file := Find(map[string]string{"HOME": "/h", "ANSIBLE_CONFIG": "/p/ansible.cfg"}, reading(map[string]string{"/p/ansible.cfg": `
roles_path = /before
# roles_path = /comment
; roles_path = /comment
[defaults]
Roles_Path: roles:../more::~/mine:/abs/ ; the project's
collections_path = "collections"
library = {{CWD}}/library
callback_plugins = $HOME/callbacks
[connection]
pipelining = True
[ssh_connection]
pipelining = False
`}))
	for key, want := range map[string][]string{
		"roles_path": {"/p/roles", "/more", "/h/mine", "/abs"}, "collections_path": {"/p/collections"}, "library": nil, "callback_plugins": nil, "filter_plugins": nil,
	} {
		if diff := cmp.Diff(want, file.Paths(key)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	if got, found := file.Value("pipelining", "defaults", "connection"); got != "True" || !found {
		t.Errorf("got %q, %t", got, found)
	}
	if _, found := file.Value("pipelining", "defaults"); found {
		t.Error("a setting of another section is none")
	}
	if _, found := (File{}).Value("pipelining", "defaults"); found {
		t.Error("no file has a setting")
	}
}
