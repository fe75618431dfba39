package rights

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/author/tree"
)

// edit replaces the lines from first to last of a file; none are replaced where last is first-1.
type edit struct {
	file        string
	first, last int
	lines       []string
}

// setVerbs plans the line, or lines, of a rule's verbs.
func (p *Project) setVerbs(r *role, one rule, verbs []string) {
	node := source.Field(one.node, "verbs")
	lines := p.files[r.at.File]
	if node.Style&yaml.FlowStyle != 0 {
		line := lines[node.Line-1]
		begin := node.Column - 1
		if end := strings.Index(line[begin:], "]"); end >= 0 {
			p.edits = append(p.edits, edit{r.at.File, node.Line, node.Line, []string{line[:begin] + verbList(verbs) + line[begin+end+1:]}})
			return
		}
	}
	var changed []string
	first, last := one.last+1, one.last
	for _, v := range node.Content {
		if node.Style&yaml.FlowStyle != 0 {
			break
		}
		first, last = min(first, v.Line), v.Line
		if slices.Contains(verbs, v.Value) {
			changed = append(changed, lines[v.Line-1])
		}
	}
	if changed == nil { // In several lines between brackets.
		var anew []string
		for _, group := range one.groups {
			for _, resource := range one.resources {
				for _, line := range ruleLines(subject{group, resource, one.name()}, verbs) {
					anew = append(anew, strings.Repeat(" ", r.list.Column-1)+line)
				}
			}
		}
		p.edits = append(p.edits, edit{r.at.File, one.first, one.last, anew})
		return
	}
	for _, verb := range sorted(verbs) {
		if !slices.Contains(one.verbs, verb) {
			changed = append(changed, strings.Repeat(" ", node.Column-1)+"- "+quoted(verb))
		}
	}
	p.edits = append(p.edits, edit{r.at.File, first, last, changed})
}

// append plans further rules at the end of a role.
func (p *Project) append(r *role, rules []string) error {
	if len(rules) == 0 {
		return nil
	}
	lines := p.files[r.at.File]
	switch {
	case r.list == nil:
		return fmt.Errorf("%s:%d: the role has no list of rules: write rules: [] into it, then repeat the command", r.at.File, r.at.Line)
	case len(r.rules) > 0 && r.list.Style&yaml.FlowStyle == 0:
		p.edits = append(p.edits, edit{r.at.File, r.rules[len(r.rules)-1].last + 1, r.rules[len(r.rules)-1].last, indented(r.list.Column-1, rules)})
		return nil
	case len(r.rules) > 0:
		return fmt.Errorf("%s:%d: the rules stand between brackets: write each in lines of its own, then repeat the command", r.at.File, r.list.Line)
	}
	line := lines[r.list.Line-1]
	key := strings.TrimRight(line[:r.list.Column-1], " ")
	rest := strings.TrimPrefix(strings.TrimPrefix(line[r.list.Column-1:], "["), "]")
	if key == "" { // The brackets have a line of their own.
		p.edits = append(p.edits, edit{r.at.File, r.list.Line, r.list.Line, indented(r.list.Column-1, rules)})
		return nil
	}
	outer := len(line) - len(strings.TrimLeft(line, " "))
	p.edits = append(p.edits, edit{r.at.File, r.list.Line, r.list.Line, append([]string{strings.TrimRight(key+rest, " ")}, indented(outer+2, rules)...)})
	return nil
}

func indented(columns int, lines []string) []string {
	var out []string
	for _, line := range lines {
		out = append(out, strings.Repeat(" ", columns)+line)
	}
	return out
}

// Save carries out the edits in the project's directory, and returns the files that have changed.
func (p *Project) Save(dir string) (changed []string, err error) {
	// From the end, so that the numbers of the lines before stay true.
	slices.SortStableFunc(p.edits, func(a, b edit) int { return cmp.Compare(b.first, a.first) })
	for _, file := range slices.Sorted(maps.Keys(p.files)) {
		before := p.files[file]
		after := slices.Clone(before)
		for _, e := range p.edits {
			if e.file == file {
				after = slices.Replace(after, e.first-1, e.last, e.lines...)
			}
		}
		if slices.Equal(before, after) {
			continue
		}
		relative, err := filepath.Rel(dir, file)
		if err == nil {
			err = tree.Replace(dir, relative, []byte(strings.Join(after, "\n")+"\n"))
		}
		if err != nil {
			return changed, err
		}
		changed = append(changed, file)
	}
	return changed, nil
}
