package scaffold

import (
	"io/fs"
	"path"
	"strings"

	"github.com/ensign-operator/ensign/charts"
	"github.com/ensign-operator/ensign/config"
	"github.com/ensign-operator/ensign/internal/docslink"
)

// chartDir is where the chart of a project is. Its charts/ are content.
const chartDir = "config/chart"

// chartLinks are the links by which the chart has files of config/.
func chartLinks() map[string]string {
	return map[string]string{
		"files/crds": "../../crd/bases", "files/rbac": "../../rbac", "files/jobs": "../../overlays/jobs/runs", "files/alerts.yaml": "../../prometheus/rules.yaml",
	}
}

// derive plans the files of a project that are this repository's own except for names: monitoring,
// the network policy, the needs of runs in Jobs, and the chart. A project with
// reconcilers in Go has no chart: it may have webhooks, whose certificates need more, and its own
// flags.
func (p Project) derive(plan *Plan) error {
	for _, dir := range []string{"prometheus", "grafana", "network-policy", "overlays/jobs"} {
		if err := p.deriveTree(config.Files, dir, "config/"+dir, plan); err != nil {
			return err
		}
	}
	if p.Repo != "" {
		return nil
	}
	if err := p.deriveTree(charts.Files, "ensign", chartDir, plan); err != nil {
		return err
	}
	for name, target := range chartLinks() {
		plan.link(path.Join(chartDir, name), target)
	}
	return nil
}

func (p Project) deriveTree(from fs.FS, root, to string, plan *Plan) error {
	names := p.names()
	return fs.WalkDir(from, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		plan.create(path.Join(to, strings.TrimPrefix(name, root+"/")), []byte(names.Replace(string(content))))
		return err
	})
}

// names gives this repository's files the names of the project. The metrics and the names of alerts
// and templates stay: they are Ensign's in each operator.
func (p Project) names() *strings.Replacer {
	name := p.ProjectName
	return strings.NewReplacer(
		"The Ensign operator for MySQLCluster, MySQLDatabase, MySQLUser, MySQLEndpoint, MySQLBackup and MySQLRestore.", "The operator "+name+".",
		"ensign.myapp.myorg.tld", name+"."+p.Domain, "name: ensign-manager", "name: "+name+"-manager", "ensign-jobs.ensign-system", name+"-jobs."+name+"-system",
		"app.kubernetes.io/name: ensign", "app.kubernetes.io/name: "+name,
		"part-of: ensign", "part-of: "+name, "part-of=ensign", "part-of="+name, `part-of" "ensign"`, `part-of" "`+name+`"`,
		"\nname: ensign", "\nname: "+name, "- name: ensign\n", "- name: "+name+"\n", "repository: ensign", "repository: "+name,
		"namespace: ensign-system", "namespace: "+name+"-system", "namePrefix: ensign-", "namePrefix: "+name+"-",
		"ensign-metrics-reader", name+"-metrics-reader", ".myapp.myorg.tld", "."+p.Domain, "https://github.com/ensign-operator/ensign/blob/main/", docslink.Root(),
		"config/default; a test compares them.", "config/default.", `"ensign" for a release`, `"`+name+`" for a release`,
	)
}
