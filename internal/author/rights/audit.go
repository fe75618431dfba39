package rights

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// maxLine bounds a line of an audit log: with the bodies of requests they are long.
const maxLine = 64 << 20

// FromAudit returns the rights that an account has used, from an API server's audit log in JSON
// lines. An empty user means each account whose name begins with system:serviceaccount:.
// Requests that were denied count too: the account needs the right. If a request
// impersonates another account, its sender needs the right to impersonate, and the other account
// the rest. Rights that Kubernetes gives to all accounts are left out.
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
			User         auditUser  `json:"user"`
			Impersonated *auditUser `json:"impersonatedUser"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return needs, fmt.Errorf("line %d is not an event of an audit log: %w", n, err)
		}
		where, actor := fmt.Sprintf("the audit log, line %d", n), e.User
		if e.Impersonated != nil {
			if e.User.is(user) && strings.HasPrefix(e.Impersonated.Username, serviceaccount.ServiceAccountUsernamePrefix) {
				needs.All = append(needs.All, Need{Right: Right{Resource: "serviceaccounts", Verb: "impersonate"}, Where: where, Anywhere: true})
			}
			actor = *e.Impersonated
		}
		if e.ObjectRef == nil || e.ObjectRef.Resource == "" || !actor.is(user) {
			continue
		}
		resource := strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
		right := Right{Group: e.ObjectRef.Group, Resource: resource, Verb: e.Verb}
		if right.ofEverybody() {
			continue
		}
		needs.All = append(needs.All, Need{Right: right, Scope: scopeOf(right), Where: where, Anywhere: true})
	}
	return needs, lines.Err()
}

type auditUser struct {
	Username string `json:"username"`
}

// is reports whether this is the user, or, where that is "", any service account outside of kube-system.
func (u auditUser) is(user string) bool {
	if user != "" {
		return u.Username == user
	}
	namespace, _, err := serviceaccount.SplitUsername(u.Username)
	return err == nil && namespace != "kube-system"
}

// ofEverybody reports whether the ClusterRole system:basic-user, which is bound to all accounts, gives the right.
func (r Right) ofEverybody() bool {
	switch r.Group + "/" + r.Resource {
	case "authorization.k8s.io/selfsubjectaccessreviews", "authorization.k8s.io/selfsubjectrulesreviews", "authentication.k8s.io/selfsubjectreviews":
		return r.Verb == "create"
	}
	return false
}

// scopeOf puts the manager's own rights into the role that has them.
func scopeOf(r Right) Scope {
	switch r.Group {
	case "coordination.k8s.io":
		return Lease
	case "authentication.k8s.io", "authorization.k8s.io":
		return Metrics
	}
	return Manager
}
