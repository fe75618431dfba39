package rights

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// maxLine bounds a line of an audit log: with the bodies of requests they are long.
const maxLine = 64 << 20

// FromAudit returns the rights that an account has used, from an API server's audit log in JSON
// lines. An empty user means each account whose name begins with system:serviceaccount:.
// Requests that were denied count too: the account needs the right.
func FromAudit(log io.Reader, user string) (Needs, error) {
	var needs Needs
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var e struct {
			Verb      string `json:"verb"`
			Stage     string `json:"stage"`
			ObjectRef *struct {
				Group       string `json:"apiGroup"`
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
			} `json:"objectRef"`
			User struct {
				Username string `json:"username"`
			} `json:"user"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return needs, fmt.Errorf("line %d is no event of an audit log: %w", n, err)
		}
		if e.ObjectRef == nil || e.ObjectRef.Resource == "" || user != "" && e.User.Username != user ||
			user == "" && (!strings.HasPrefix(e.User.Username, "system:serviceaccount:") || strings.HasPrefix(e.User.Username, "system:serviceaccount:kube-system:")) {
			continue
		}
		resource := strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
		right := Right{Group: e.ObjectRef.Group, Resource: resource, Verb: e.Verb}
		needs.All = append(needs.All, Need{Right: right, Scope: scopeOf(right), Where: fmt.Sprintf("the audit log, line %d", n), Anywhere: true})
	}
	return needs, lines.Err()
}

// scopeOf puts what the manager itself asks for into the role that has it.
func scopeOf(r Right) Scope {
	switch r.Group {
	case "coordination.k8s.io":
		return Lease
	case "authentication.k8s.io", "authorization.k8s.io":
		return Metrics
	}
	return Manager
}
