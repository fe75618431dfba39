package check

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/watches"
)

func TestPlaysWhoseHostsNoInventoryHas(t *testing.T) {
	found := []string{"play.yml:1 warning unknown-host"}
	for name, test := range map[string]struct {
		play  string
		env   config.Environment
		files map[string]string
		want  []string
	}{
		"localhost":                         {play: "- hosts: localhost\n"},
		"all":                               {play: "- hosts: all\n"},
		"a slip":                            {play: "- hosts: lcalhost\n", want: found},
		"a slip in a list":                  {play: "- hosts: [localhost, web]\n", want: found},
		"a template":                        {play: "- hosts: '{{ where }}'\n"},
		"a pattern":                         {play: "- hosts: 'all:!web'\n"},
		"a host that a task adds":           {play: "- hosts: web\n  tasks: [{add_host: {name: web}}]\n"},
		"where the environment names one":   {play: "- hosts: web\n", env: config.Environment{"ANSIBLE_INVENTORY": "inventory"}},
		"where the manager's pod has one":   {play: "- hosts: web\n", files: map[string]string{"config/manager/manager.yaml": "env: [{name: ANSIBLE_INVENTORY, value: x}]\n"}},
		"where ansible.cfg names one":       {play: "- hosts: web\n", files: map[string]string{"ansible.cfg": "[defaults]\ninventory = x\n"}},
		"where the image has a variable":    {play: "- hosts: web\n", files: map[string]string{"Dockerfile": "ENV ANSIBLE_INVENTORY=/x\n"}},
		"a group of several plays":          {play: "- hosts: localhost\n- hosts: web\n", want: []string{"play.yml:2 warning unknown-host"}},
		"a file of variables names no host": {play: "- hosts: web\n", files: map[string]string{"group_vars/web.yml": "a: 1\n"}, want: found},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"play.yml": test.play}
			maps.Copy(files, test.files)
			p := project(t, thing(), files)
			p.options.Env = test.env
			watch := thing()
			watch.Content = watches.Content{Playbook: filepath.Join(p.options.Dir, "play.yml")}
			for _, unit := range source.Walk([]watches.Watch{watch}, source.Search{Dir: p.options.Dir}) {
				p.hosts(&Unit{Unit: unit, Index: unit.Index()})
			}
			want(t, p, test.want...)
		})
	}
}
