package check

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// deletes adds tasks that delete objects whoever they belong to.
func (p *Project) deletes(u *Unit) {
	for _, t := range u.Tasks {
		by := deletesByModule(u, t)
		if module := source.Plain(t.Module); module == "command" || module == "shell" {
			by = deletesByCommand(t)
		}
		if by != "" {
			p.add(finding{
				"unowned-delete", report.Warning, t.Position, "this deletes by " + by + " whatever it finds, whoever it belongs to",
				"a Helm release, or another resource, may have an object of that " + by, "use ensign.operator.k8s_delete_owned, which checks the owner",
			})
		}
	}
}

// deletesByModule returns how a task chooses what it deletes. "" is for one that deletes nothing, or that
// expects a UID, so that it has looked at the object before.
func deletesByModule(u *Unit, t *source.Task) string {
	expected := source.Field(t.Arg("delete_options"), "preconditions")
	switch {
	case rights.Module(t) != "k8s" || !slices.Contains(rights.States(u.Unit, u.Index, t), "absent") || source.Field(expected, "uid") != nil:
		return ""
	case t.Arg("label_selectors") != nil:
		return "label"
	case source.True(t.Arg("delete_all")):
		return "kind"
	}
	return "name"
}

var (
	kubectlDelete = regexp.MustCompile(`\b(?:kubectl|oc)\s(?:[^|;&\n]*\s)?delete\s[^|;&\n]*`)
	byLabel       = regexp.MustCompile(`\s(?:-l|--selector)\b`)
	byKind        = regexp.MustCompile(`\s--all\b`)
)

// deletesByCommand is deletesByModule for a command line with kubectl or oc.
func deletesByCommand(t *source.Task) string {
	text := source.Scalar(commandArgument(t))
	if argv := t.Arg("argv"); argv != nil {
		words := make([]string, 0, len(argv.Content))
		for _, word := range argv.Content {
			words = append(words, word.Value)
		}
		text = strings.Join(words, " ")
	}
	switch found := kubectlDelete.FindString(text); {
	case found == "":
		return ""
	case byLabel.MatchString(found):
		return "label"
	case byKind.MatchString(found):
		return "kind"
	}
	return "name"
}
