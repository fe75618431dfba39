package operator

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/watches"
)

func TestSearchPaths(t *testing.T) {
	for why, test := range map[string]struct {
		options Options
		env     environment
		want    ansiblePaths
	}{
		"without a word the project's own roles come before Ansible's defaults": {
			want: ansiblePaths{roles: []string{"/op/roles", "/home/u/.ansible/roles", "/usr/share/ansible/roles", "/etc/ansible/roles"}},
		},
		"the environment's relative and home paths become absolute": {
			env:  environment{"ANSIBLE_ROLES_PATH": "~/r:here", "ANSIBLE_COLLECTIONS_PATH": "c::/abs"},
			want: ansiblePaths{roles: []string{"/home/u/r", "/op/here"}, collections: []string{"/op/c", "/abs"}},
		},
		"a flag goes over the environment": {
			options: Options{AnsibleRolesPath: "/flag", AnsibleCollectionsPath: "/collections"},
			env:     environment{"ANSIBLE_ROLES_PATH": "/env", "ANSIBLE_COLLECTIONS_PATH": "/env"},
			want:    ansiblePaths{roles: []string{"/flag"}, collections: []string{"/collections"}},
		},
		"a configuration file may say where roles are": {
			env:  environment{"ANSIBLE_CONFIG": "/etc/own.cfg"},
			want: ansiblePaths{},
		},
		"another user's home is left as it is written": {
			env:  environment{"ANSIBLE_ROLES_PATH": "~other/r"},
			want: ansiblePaths{roles: []string{"/op/~other/r"}},
		},
	} {
		t.Run(why, func(t *testing.T) {
			env := environment{"HOME": "/home/u"}
			maps.Copy(env, test.env)
			test.options.Dir = "/op"
			if diff := cmp.Diff(test.want, searchPaths(test.options, env, func(string) bool { return false }), cmp.AllowUnexported(ansiblePaths{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAConfigurationFileIsRespected(t *testing.T) {
	for _, file := range []string{"/home/u/.ansible.cfg", "/etc/ansible/ansible.cfg"} {
		got := searchPaths(Options{Dir: "/op"}, environment{"HOME": "/home/u"}, func(path string) bool { return path == file })
		if got.roles != nil {
			t.Errorf("%s: want the roles path left to the configuration, got %v", file, got.roles)
		}
	}
}

func TestTheEnvironmentGoesOverAWatch(t *testing.T) {
	one := 1
	watch := watches.Watch{GVK: schema.GroupVersionKind{Group: "my.io", Version: "v1", Kind: "Thing"}, MaxConcurrentReconciles: 9, Verbosity: &one}
	for why, test := range map[string]struct {
		env           environment
		wantWorkers   int
		wantVerbosity int
	}{
		"nothing said":                {environment{"WORKER_OTHER_MY_IO": "3"}, 9, 1},
		"workers by the newer name":   {environment{"MAX_CONCURRENT_RECONCILES_THING_MY_IO": "4"}, 4, 1},
		"workers by the older name":   {environment{"WORKER_THING_MY_IO": "5"}, 5, 1},
		"the newer name goes first":   {environment{"WORKER_THING_MY_IO": "5", "MAX_CONCURRENT_RECONCILES_THING_MY_IO": "4"}, 4, 1},
		"verbosity, zero not skipped": {environment{"ANSIBLE_VERBOSITY_THING_MY_IO": "0"}, 9, 0},
	} {
		t.Run(why, func(t *testing.T) {
			list := []watches.Watch{watch}
			if err := test.env.override(list); err != nil {
				t.Fatal(err)
			}
			got := list[0]
			if got.MaxConcurrentReconciles != test.wantWorkers || *got.Verbosity != test.wantVerbosity {
				t.Errorf("got %d workers, verbosity %d", got.MaxConcurrentReconciles, *got.Verbosity)
			}
		})
	}
	wrong := environment{"WORKER_THING_MY_IO": "0", "MAX_CONCURRENT_RECONCILES_THING_MY_IO": "many", "ANSIBLE_VERBOSITY_SECRET_": "8"}
	err := wrong.override([]watches.Watch{watch, {GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}}})
	for name, value := range wrong {
		if err == nil || !strings.Contains(err.Error(), name+`: "`+value+`"`) {
			t.Errorf("%s=%s: want an error that names them all, got %v", name, value, err)
		}
	}
}

func TestVariablesOfKindsThatAreNotWatched(t *testing.T) {
	list := []watches.Watch{
		{GVK: schema.GroupVersionKind{Group: "my.io", Version: "v1", Kind: "Thing"}}, {GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}},
	}
	got := environment{
		"ANSIBLE_VERBOSITY_THING_MY_IO": "1", "MAX_CONCURRENT_RECONCILES_SECRET_": "1", "ANSIBLE_VERBOSITY": "1", "WORKER_OF_SOMEBODY": "x",
		"ANSIBLE_VERBOSITY_THINGS_MY_IO": "1", "MAX_CONCURRENT_RECONCILES_SECRET": "1",
	}.strangers(list)
	if diff := cmp.Diff([]string{"ANSIBLE_VERBOSITY_THINGS_MY_IO", "MAX_CONCURRENT_RECONCILES_SECRET"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLeaderElectionNeedsAName(t *testing.T) {
	for why, test := range map[string]struct {
		options Options
		env     environment
		want    string
		wantErr bool
	}{
		"no election needs none":          {options: Options{}},
		"the flag's":                      {options: Options{LeaderElect: true, LeaderElectionID: "a"}, env: environment{"OPERATOR_NAME": "b"}, want: "a"},
		"the environment's":               {options: Options{LeaderElect: true}, env: environment{"OPERATOR_NAME": "b"}, want: "b"},
		"none would collide with others'": {options: Options{LeaderElect: true}, wantErr: true},
	} {
		t.Run(why, func(t *testing.T) {
			got, err := leaderElectionID(test.options, test.env)
			if got != test.want || (err != nil) != test.wantErr {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestWatchedNamespaces(t *testing.T) {
	got := cacheOptions(environment{"WATCH_NAMESPACE": "a, b,,"}, nil)
	if len(got.DefaultNamespaces) != 2 {
		t.Errorf("want a and b, got %v", got.DefaultNamespaces)
	}
	if all := cacheOptions(environment{}, nil); all.DefaultNamespaces != nil || all.DefaultTransform == nil {
		t.Errorf("want all namespaces, reduced; got %+v", all)
	}
}

func TestConfinedAreTheKindsThatAskForIt(t *testing.T) {
	kind := func(name string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: name}
	}
	all := []watches.Watch{{GVK: kind("A"), ConfineToNamespace: true}, {GVK: kind("B")}}
	older := access.Owner{GVK: schema.GroupVersionKind{Group: "g.io", Version: "v1beta1", Kind: "A"}}
	one, every := confined(Options{}, all), confined(Options{ConfineToNamespace: true}, all)
	if !one(access.Owner{GVK: kind("A")}) || !one(older) || one(access.Owner{GVK: kind("B")}) {
		t.Error("want the watch's own word to count, in each version")
	}
	if !every(access.Owner{GVK: kind("A")}) || !every(access.Owner{GVK: kind("B")}) {
		t.Error("want the flag to count for all")
	}
}
