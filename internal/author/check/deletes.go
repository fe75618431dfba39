package check

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// deletes adds tasks that delete objects of any owner.
func (p *Project) deletes(u *Unit) {
	for _, t := range u.Tasks {
		if by := cmp.Or(deletesByModule(u, t), deletesByRequest(t), deletesByCommand(t)); by != "" && !looksAtOwners(t) {
			p.add(finding{
				"unowned-delete", report.Warning, t.Position, "the task deletes all objects that it finds by " + by + ", of any owner",
				"a Helm release, or another resource, may have an object of that " + by, "use ensign.operator.k8s_delete_owned, which checks the owner, or compare the ownerReferences of the object, or of one of the release's, with the resource's UID in when",
			})
		}
	}
}

// looksAtOwners reports whether the condition of a task, of a block around it, or its loop reads owners.
func looksAtOwners(t *source.Task) bool {
	for ; t != nil; t = t.Parent {
		if strings.Contains(source.AllText(t.Keys["when"])+source.AllText(t.Loop), "ownerReferences") {
			return true
		}
	}
	return false
}

// deletesByModule returns how a task chooses the objects that it deletes. "" is for one that
// deletes nothing.
func deletesByModule(u *Unit, t *source.Task) string {
	switch {
	case !slices.Contains([]string{"k8s", "helm"}, rights.Module(t)), !slices.Contains(rights.States(u.Unit, u.Index, t), "absent"):
		return ""
	case t.Arg("label_selectors") != nil:
		return "label"
	case source.True(t.Arg("delete_all")):
		return "kind"
	}
	return "name"
}

var (
	// The program may be in a variable: {{ oc_bin }} delete, $KUBECTL delete.
	deleteCommand = regexp.MustCompile(`(?i)(?:\b|_)(?:kubectl|oc|helm3?)(?:_\w+)?(?:\s*\}\}|\})?"?\s(?:[^|;&\n]*\s)?(?:delete|del|uninstall)\s[^|;&\n]*`)
	// These delete nothing.
	noDelete  = regexp.MustCompile(`\scan-i\s|\s--dry-run|\s--help\b|\sexec\s.*\s--\s|\s(?:plugin|krew)\s+uninstall\s`)
	noCommand = regexp.MustCompile(`(?m)^\s*(?:#|echo\b|printf\b).*$`)
	byLabel   = regexp.MustCompile(`\s(?:-l|--selector)\b`)
	byKind    = regexp.MustCompile(`\s--all\b`)
	// apiURL is one of the API server. Others have URLs below /api/, too.
	apiURL = regexp.MustCompile(`(?i)kubernetes\.default|kubernetes_service_host|k8s_auth_host|/apis/[^/]+/(?:v\d|namespaces/|\{\{)|/api/v1/(?:namespaces|nodes|persistentvolumes)/`)
)

// deletesByRequest is deletesByModule for a request to the API server.
func deletesByRequest(t *source.Task) string {
	url := source.Scalar(t.Arg("url"))
	switch {
	case source.Plain(t.Module) != "uri" || !strings.Contains(strings.ToUpper(source.Scalar(t.Arg("method"))), "DELETE") || !apiURL.MatchString(url):
		return ""
	case strings.Contains(url, "labelSelector="):
		return "label"
	}
	return "name"
}

// deletesByCommand is deletesByModule for a command line or a script with kubectl, oc or helm.
func deletesByCommand(t *source.Task) string {
	for _, found := range deleteCommand.FindAllString(noCommand.ReplaceAllString(strings.ReplaceAll(commandText(t), "\\\n", " "), ""), -1) {
		switch {
		case noDelete.MatchString(found):
		case byLabel.MatchString(found):
			return "label"
		case byKind.MatchString(found):
			return "kind"
		default:
			return "name"
		}
	}
	return ""
}

// commandText returns the command line of a task, or the script that it runs.
func commandText(t *source.Task) string {
	module, text := source.Plain(t.Module), source.Scalar(commandArgument(t))
	switch words := strings.Fields(text); {
	case module == "script" && len(words) > 0:
		script, _ := os.ReadFile(source.FindFile(t, "files", words[0])) // Another finding reports a missing file.
		text = string(script)
	case !slices.Contains([]string{"command", "shell", "raw"}, module) && rights.Module(t) != "k8s_exec":
		return ""
	case t.Arg("argv") != nil:
		text = strings.ReplaceAll(source.AllText(t.Arg("argv")), "\n", " ")
	}
	return text
}
