package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// enlist adds the kind to the files that list kinds.
func (k *Kind) enlist(plan *Plan) (err error) {
	add := func(path, item string, keys ...string) {
		if err == nil {
			err = plan.edit(path, func(content []byte) ([]byte, error) { return insert(content, item, keys...) })
		}
	}
	add("PROJECT", k.projectEntry(), "resources")
	add("watches.yaml", k.watchesEntry())
	add("config/crd/kustomization.yaml", fmt.Sprintf("bases/%s_%s.yaml", k.APIGroup, k.Plural), "resources")
	add("config/samples/kustomization.yaml", k.sampleName(), "resources")
	if k.Chart == "" { // Molecule runs roles and playbooks.
		add("molecule/default/converge.yml", k.convergeEntry())
	}
	for _, who := range []string{"admin", "editor", "viewer"} {
		add("config/rbac/kustomization.yaml", fmt.Sprintf("%s_%s_role.yaml", k.Singular, who), "resources")
	}
	for _, rule := range k.rules() {
		item := "  - " + strings.TrimLeft(indent(4, withoutComments(rule)), " ")
		if text, err := plan.read("config/rbac/role.yaml"); err == nil && strings.Contains(string(text), item+"\n") {
			continue // Another kind has brought it.
		}
		add("config/rbac/role.yaml", rule, "rules")
	}
	if err != nil {
		return err
	}
	return k.ship(plan)
}

// ship makes the image hold the directory with the chart, and linters leave it alone.
func (k *Kind) ship(plan *Plan) error {
	if k.Chart == "" {
		return nil
	}
	for path, line := range map[string]string{
		"Dockerfile": fmt.Sprintf("COPY %s/ ${HOME}/%s/", k.chartDir(), k.chartDir()), ".dockerignore": "!" + k.chartDir(),
	} {
		text, err := plan.read(path)
		if err == nil && slices.Contains(strings.Split(string(text), "\n"), line) {
			continue // Another kind has brought it.
		}
		if path == ".dockerignore" && errors.Is(err, fs.ErrNotExist) {
			continue // The image's build sees all files, as in projects of operator-sdk's Helm operator.
		}
		err = plan.edit(path, func(content []byte) ([]byte, error) {
			return []byte(strings.TrimRight(string(content), "\n") + "\n" + line + "\n"), nil
		})
		if err != nil {
			return err
		}
	}
	k.excuse(plan, ".yamllint", "  /"+k.chartDir()+"/", func(content []byte, line string) ([]byte, error) {
		before, after, found := strings.Cut(string(content), "\nignore: |\n")
		if !found {
			return nil, errors.New("there is no line \"ignore: |\"")
		}
		return []byte(before + "\nignore: |\n" + line + "\n" + after), nil
	})
	k.excuse(plan, ".ansible-lint", "  - "+k.chartDir()+"/", func(content []byte, _ string) ([]byte, error) {
		return insert(content, k.chartDir()+"/", "exclude_paths")
	})
	return nil
}

// excuse adds a line to the settings of a linter, unless it is there. A project may have settings
// of its own, or no linter.
func (k *Kind) excuse(plan *Plan, path, line string, add func(content []byte, line string) ([]byte, error)) {
	text, err := plan.read(path)
	if err != nil || slices.Contains(strings.Split(string(text), "\n"), line) {
		return
	}
	if err := plan.edit(path, func(content []byte) ([]byte, error) { return add(content, line) }); err != nil {
		plan.Notes = append(plan.Notes, fmt.Sprintf("have the linter leave %s/ alone, whose templates are not YAML: %s", k.chartDir(), err))
	}
}

func (k *Kind) projectEntry() string {
	group := ""
	if k.Group != "" {
		group = "group: " + k.Group + "\n"
	}
	return fmt.Sprintf("api:\n  crdVersion: v1\n  namespaced: %t\ndomain: %s\n%skind: %s\nversion: %s", k.Namespaced, k.Domain, group, k.Kind, k.Version)
}

// watchesEntry returns the watch of the kind. Its Ready tells how the application is.
func (k *Kind) watchesEntry() string {
	const ready = "ready: manager\nhealth: true"
	if k.Chart != "" {
		return fmt.Sprintf("group: %s\nversion: %s\nkind: %s\nchart: %s\n%s", k.APIGroup, k.Version, k.Kind, k.chartPath, ready)
	}
	content := func(suffix string) string {
		if k.Role != "" {
			return "role: " + k.Role + suffix
		}
		return "playbook: " + strings.TrimSuffix(k.Playbook, ".yml") + suffix + ".yml"
	}
	entry := fmt.Sprintf("group: %s\nversion: %s\nkind: %s\n%s\n%s", k.APIGroup, k.Version, k.Kind, content(""), ready)
	if k.Finalizer {
		entry += fmt.Sprintf("\nfinalizer:\n  name: %s/finalizer\n  %s", k.APIGroup, content("_finalizer"))
	}
	return entry
}

// convergeEntry returns the play, or the import of the playbook, that tries the content.
func (k *Kind) convergeEntry() string {
	vars := "vars:\n  ansible_operator_meta:\n    name: " + k.Singular + "-sample\n    namespace: " + k.ProjectName + "-molecule"
	if k.SampleVars != "" {
		vars += "\n" + indent(2, k.SampleVars)
	}
	if k.Role == "" {
		return fmt.Sprintf("name: Converge a %s\nansible.builtin.import_playbook: ../../%s\n%s", k.Kind, k.Playbook, vars)
	}
	return fmt.Sprintf("name: Converge a %s\nhosts: localhost\ngather_facts: false\n%s\nroles:\n  - role: %s", k.Kind, vars, k.Role)
}

// rule returns a rule, below comments with its reasons: as rbac --write writes them, which so knows
// the rule for its own.
func rule(group, resources, verbs string, reasons ...string) string {
	return fmt.Sprintf("# %s\napiGroups: [%s]\nresources: [%s]\nverbs: [%s]", strings.Join(reasons, "\n# "), group, resources, verbs)
}

// withoutComments returns the rule without the lines of its reasons.
func withoutComments(rule string) string {
	for strings.HasPrefix(rule, "#") {
		_, rule, _ = strings.Cut(rule, "\n")
	}
	return rule
}

// rules returns the rights that the manager and the generated tasks, or the chart, need for the kind.
func (k *Kind) rules() []string {
	const read, watch = "get, list, watch", "the manager: the watch in watches.yaml"
	verbs, reasons := read, []string{read + ": " + watch}
	if k.Finalizer || k.Chart != "" {
		verbs, reasons = read+", patch", append(reasons, "patch: "+watch+", its finalizer")
	}
	rules := []string{rule(k.APIGroup, k.Plural, verbs, reasons...), rule(k.APIGroup, k.Plural+"/status", "patch", "patch: "+watch+", its status")}
	if k.GenerateRole || k.GeneratePlaybook {
		place := k.Playbook
		if k.Role != "" {
			place = "roles/" + k.Role + "/tasks/main.yml"
		}
		rules = append(rules, rule(`""`, "configmaps", "get, list, watch, create, patch", "get, create, patch: "+place, "list, watch: the manager: changes of children"))
	}
	return append(rules, k.chartRules...)
}
