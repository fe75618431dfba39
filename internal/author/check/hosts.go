package check

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// plainHost matches a name of a host or a group, and not a pattern of several.
var plainHost = regexp.MustCompile(`^[\w.-]+$`)

// hosts adds plays of which the inventory of a run has no host. Only localhost is in it, unless the operator has an
// inventory of its own.
func (p *Project) hosts(u *Unit) {
	if p.hasInventory() || slices.ContainsFunc(u.Tasks, func(t *source.Task) bool {
		return slices.Contains([]string{"add_host", "group_by"}, source.Plain(t.Module))
	}) {
		return
	}
	for _, host := range u.Hosts {
		if !plainHost.MatchString(host.Name) || slices.Contains([]string{"localhost", "127.0.0.1", "all", "ungrouped"}, host.Name) {
			continue
		}
		p.add(finding{
			"unknown-host", report.Warning, host.Position, "the inventory of a run has no host or group " + host.Name,
			"Ansible skips the play: the run succeeds and does nothing", "use localhost, or name an inventory in ANSIBLE_INVENTORY",
		})
	}
}

// hasInventory reports whether something names an inventory: the environment, that of the manager's pod, or
// ansible.cfg.
func (p *Project) hasInventory() bool {
	if p.options.Env["ANSIBLE_INVENTORY"] != "" {
		return true
	}
	mentions := func(path, name string) bool {
		text, _ := os.ReadFile(path) // A file that is not there names none.
		return strings.Contains(string(text), name)
	}
	return mentions(filepath.Join(p.options.Dir, "ansible.cfg"), "inventory") || mentions(filepath.Join(p.options.Dir, "Dockerfile"), "ANSIBLE_INVENTORY") ||
		slices.ContainsFunc(source.Below(filepath.Join(p.options.Dir, "config"), ".yaml", ".yml"), func(path string) bool { return mentions(path, "ANSIBLE_INVENTORY") })
}
