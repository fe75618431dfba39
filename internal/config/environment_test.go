package config

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/cfgfile"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/options"
)

func TestSearchPaths(t *testing.T) {
	for why, test := range map[string]struct {
		options Options
		env     Environment
		file    string
		want    Paths
	}{
		"without a word the project's own roles come before Ansible's defaults": {
			want: Paths{Roles: []string{"/op/roles", "/home/u/.ansible/roles", "/usr/share/ansible/roles", "/etc/ansible/roles"}},
		},
		"the environment's relative and home paths become absolute": {
			env:  Environment{"ANSIBLE_ROLES_PATH": "~/r:here", "ANSIBLE_COLLECTIONS_PATH": "c::/abs"},
			want: Paths{Roles: []string{"/home/u/r", "/op/here"}, Collections: []string{"/op/c", "/abs"}},
		},
		"a flag goes over the environment": {
			options: Options{Options: options.Options{AnsibleRolesPath: "/flag", AnsibleCollectionsPath: "/collections"}},
			env:     Environment{"ANSIBLE_ROLES_PATH": "/env", "ANSIBLE_COLLECTIONS_PATH": "/env"},
			want:    Paths{Roles: []string{"/flag"}, Collections: []string{"/collections"}},
		},
		"a configuration file says where roles and collections are": {
			file: "[defaults]\nroles_path = more\ncollections_path = ~/c\n",
			want: Paths{Roles: []string{"/own/more", "/op/roles"}, Collections: []string{"/home/u/c"}},
		},
		"a configuration file that names the project's roles": {
			file: "[defaults]\nroles_path = /op/roles:/more\n",
			want: Paths{Roles: []string{"/op/roles", "/more"}},
		},
		"a configuration file without them leaves the project's roles": {
			file: "[defaults]\nforks = 3\n",
			want: Paths{Roles: []string{"/op/roles", "/home/u/.ansible/roles", "/usr/share/ansible/roles", "/etc/ansible/roles"}},
		},
		"the environment goes over a configuration file": {
			file: "[defaults]\nroles_path = more\n",
			env:  Environment{"ANSIBLE_ROLES_PATH": "here"},
			want: Paths{Roles: []string{"/op/here"}},
		},
		"what Ansible alone understands is left to it": {
			file: "[defaults]\nroles_path = {{CWD}}/roles\n",
			want: Paths{},
		},
		"paths of the image are the project's": {
			options: Options{Project: true},
			env:     Environment{"ANSIBLE_ROLES_PATH": "/opt/ansible/roles:/opt/ansible-more", "ANSIBLE_COLLECTIONS_PATH": "/opt/ansible"},
			want:    Paths{Roles: []string{"/op/roles", "/opt/ansible-more"}, Collections: []string{"/op"}},
		},
		"and the image's for a manager": {
			env:  Environment{"ANSIBLE_ROLES_PATH": "/opt/ansible/roles"},
			want: Paths{Roles: []string{"/opt/ansible/roles"}},
		},
		"another user's home is left as it is written": {
			env:  Environment{"ANSIBLE_ROLES_PATH": "~other/r"},
			want: Paths{Roles: []string{"/op/~other/r"}},
		},
	} {
		t.Run(why, func(t *testing.T) {
			test.options.Dir, test.options.Env = "/op", Environment{"HOME": "/home/u"}
			maps.Copy(test.options.Env, test.env)
			settings := cfgfile.Find(map[string]string{"HOME": "/home/u", "ANSIBLE_CONFIG": "/own/ansible.cfg"}, func(path string) ([]byte, error) {
				if path != "/own/ansible.cfg" {
					return nil, os.ErrNotExist
				}
				return []byte(test.file), nil
			})
			if test.want.Collections == nil {
				test.want.DefaultCollections = []string{"/home/u/.ansible/collections", "/usr/share/ansible/collections"}
			}
			if diff := cmp.Diff(test.want, test.options.searchPaths(settings)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheEnvironmentOverridesAWatch(t *testing.T) {
	one := 1
	watch := watches.Watch{GVK: schema.GroupVersionKind{Group: "my.io", Version: "v1", Kind: "Thing"}, MaxConcurrentReconciles: 9, Verbosity: &one}
	for why, test := range map[string]struct {
		env           Environment
		wantWorkers   int
		wantVerbosity int
	}{
		"nothing said":                {Environment{"WORKER_OTHER_MY_IO": "3"}, 9, 1},
		"workers by the newer name":   {Environment{"MAX_CONCURRENT_RECONCILES_THING_MY_IO": "4"}, 4, 1},
		"workers by the older name":   {Environment{"WORKER_THING_MY_IO": "5"}, 5, 1},
		"the newer name goes first":   {Environment{"WORKER_THING_MY_IO": "5", "MAX_CONCURRENT_RECONCILES_THING_MY_IO": "4"}, 4, 1},
		"verbosity, zero not skipped": {Environment{"ANSIBLE_VERBOSITY_THING_MY_IO": "0"}, 9, 0},
	} {
		t.Run(why, func(t *testing.T) {
			list := []watches.Watch{watch}
			if err := test.env.Override(list); err != nil {
				t.Fatal(err)
			}
			got := list[0]
			if got.MaxConcurrentReconciles != test.wantWorkers || *got.Verbosity != test.wantVerbosity {
				t.Errorf("got %d workers, verbosity %d", got.MaxConcurrentReconciles, *got.Verbosity)
			}
		})
	}
	wrong := Environment{"WORKER_THING_MY_IO": "0", "MAX_CONCURRENT_RECONCILES_THING_MY_IO": "many", "ANSIBLE_VERBOSITY_SECRET_": "8"}
	err := wrong.Override([]watches.Watch{watch, {GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}}})
	for name, value := range wrong {
		if err == nil || !strings.Contains(err.Error(), name+`: invalid value "`+value+`"`) {
			t.Errorf("%s=%s: want an error that names them all, got %v", name, value, err)
		}
	}
}

func TestUnmatchedVariables(t *testing.T) {
	list := []watches.Watch{
		{GVK: schema.GroupVersionKind{Group: "my.io", Version: "v1", Kind: "Thing"}}, {GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}},
	}
	got := Environment{
		"ANSIBLE_VERBOSITY_THING_MY_IO": "1", "MAX_CONCURRENT_RECONCILES_SECRET_": "1", "ANSIBLE_VERBOSITY": "1", "WORKER_OF_SOMEBODY": "x",
		"ANSIBLE_VERBOSITY_THINGS_MY_IO": "1", "MAX_CONCURRENT_RECONCILES_SECRET": "1",
	}.UnmatchedVariables(list)
	if diff := cmp.Diff([]string{"ANSIBLE_VERBOSITY_THINGS_MY_IO", "MAX_CONCURRENT_RECONCILES_SECRET"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheNameOfTheLease(t *testing.T) {
	for why, test := range map[string]struct {
		options Options
		env     Environment
		want    string
	}{
		"no election needs none":          {options: Options{}},
		"the flag's":                      {options: Options{LeaderElect: true, LeaderElectionID: "a"}, env: Environment{"OPERATOR_NAME": "b"}, want: "a"},
		"the environment's":               {options: Options{LeaderElect: true}, env: Environment{"OPERATOR_NAME": "b"}, want: "b"},
		"none would collide with others'": {options: Options{LeaderElect: true}},
	} {
		t.Run(why, func(t *testing.T) {
			test.options.Env = test.env
			if got := test.options.LeaseName(); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
