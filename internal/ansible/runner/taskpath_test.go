package runner

import "testing"

func TestPlacesAreShort(t *testing.T) {
	r := &Runner{RolesPath: []string{"/usr/share/ansible/roles"}}
	role, playbook := Spec{Role: "site", RolesPath: "/opt/ansible/roles"}, Spec{Playbook: "/opt/ansible/playbooks/site.yml"}
	const project = "/run/uid/run/project"
	cases := map[string]struct {
		spec       Spec
		path, want string
	}{
		"a task of the watch's role":          {role, "/opt/ansible/roles/site/tasks/main.yml:3", "roles/site/tasks/main.yml:3"},
		"a task of a role that it takes":      {role, "/usr/share/ansible/roles/base/tasks/main.yml:3", "roles/base/tasks/main.yml:3"},
		"a task of the watch's playbook":      {playbook, "/opt/ansible/playbooks/site.yml:7", "site.yml:7"},
		"a task of a file that it includes":   {playbook, "/opt/ansible/playbooks/tasks/more.yml:7", "tasks/more.yml:7"},
		"a task of a role of a collection":    {role, "/x/ansible_collections/example/shop/roles/shop/tasks/main.yml:1", "example/shop/roles/shop/tasks/main.yml:1"},
		"a task from elsewhere":               {role, "/srv/tasks.yml:1", "/srv/tasks.yml:1"},
		"a neighbour with the same beginning": {playbook, "/opt/ansible/playbooks2/site.yml:7", "/opt/ansible/playbooks2/site.yml:7"},
		"the playbook that was made for it":   {role, project + "/0123456789abcdef0123456789abcdef:1", ""},
		"none":                                {role, "", ""},
		"a role at the root":                  {Spec{Role: "site", RolesPath: "/roles"}, "/roles/site/tasks/main.yml:3", "/roles/site/tasks/main.yml:3"},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if got := r.shortTaskPath(c.spec, c.path, project); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
