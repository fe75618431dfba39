package runapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ensign-operator/ensign/internal/docslink"
	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/sanitize"
)

// maxDenials is how many rights are named, and maxDenialText the longest text of one in bytes.
const maxDenials, maxDenialText = 3, 160

// denials collects the rights that the account lacked in one run.
type denials struct {
	mu    sync.Mutex
	texts map[string]bool
	// username is that of the account; "" is the manager's.
	username string
	// deletes is true for a run of a CR that is being deleted.
	deletes bool
}

func (d *denials) add(denial access.Denial) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.texts == nil {
		d.texts = map[string]bool{}
	}
	d.username = denial.Username // The manager lacks all of them, or the account that it acts as.
	if len(d.texts) < 100 {      // Otherwise nothing bounds the texts of content.
		d.texts[textOf(denial)] = true
	}
}

// textOf returns a right in words. Names come from the request's path.
func textOf(d access.Denial) string {
	text := d.Verb + " " + d.Resource
	if d.Subresource != "" {
		text += "/" + d.Subresource
	}
	if d.Group != "" {
		text += " of the group " + d.Group
	}
	if d.Namespace != "" {
		text += " in the namespace " + d.Namespace
	}
	text = strings.ReplaceAll(sanitize.Text(text), "\n", `\n`)
	return strings.ToValidUTF8(text[:min(len(text), maxDenialText)], "")
}

// say returns which rights were lacking and what to do, "" if none was. The same rights give the
// same text.
func (d *denials) say() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.texts) == 0 {
		return ""
	}
	all := slices.Sorted(maps.Keys(d.texts))
	named := strings.Join(all[:min(len(all), maxDenials)], ", ")
	if more := len(all) - maxDenials; more > 0 {
		named += fmt.Sprintf(" (and %d more)", more)
	}
	if d.username != "" {
		return "the account " + d.username + ", as which this resource's runs use the API (serviceAccountName), may not " + named + ": give it these rights in a Role and a RoleBinding (" + docslink.MissingRight.URL() + ")" + d.ofNamespace()
	}
	return "the operator's account may not " + named + ": `ensign rbac --diff config/rbac`, in the operator's project, prints the rights that its content needs (" + docslink.MissingRight.URL() + ")"
}

// ofNamespace returns more advice about a finalizer: nobody can give it rights back in a namespace
// that is being deleted.
func (d *denials) ofNamespace() string {
	if !d.deletes {
		return ""
	}
	return ". If its namespace is being deleted too, the RoleBinding may be gone already: bind the account by a ClusterRoleBinding, or remove the finalizer with the annotation abandon (" + docslink.Annotations.URL() + ")"
}
