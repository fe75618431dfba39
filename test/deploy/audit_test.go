package deploy

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// request is one that the API server has answered to the manager's account.
type request struct {
	right

	namespace string
	code      int32
	uri       string
}

// right is to do something with a resource, which is "resource/subresource" for
// subresources.
type right struct{ group, resource, verb string }

// String is as the command rbac has it.
func (r right) String() string {
	return rights.Right{Group: r.group, Resource: r.resource, Verb: r.verb}.String()
}

// requests are those of the account in the log. Those that ask for no resource, such as
// discovery, have none.
func requests(log audit.Log) (found []request) {
	GinkgoHelper()
	account := "system:serviceaccount:" + namespace + ":" + manager
	all, err := log.Events(account)
	Expect(err).NotTo(HaveOccurred())
	for _, e := range all {
		if e.User.Username != account {
			continue
		}
		about := cmp.Or(e.ObjectRef, &auditv1.ObjectReference{})
		resource := strings.TrimSuffix(about.Resource+"/"+about.Subresource, "/")
		found = append(found, request{right{about.APIGroup, resource, e.Verb}, about.Namespace, cmp.Or(e.ResponseStatus, &metav1.Status{}).Code, e.RequestURI})
	}
	return found
}

// grants are the rights of the account: those of the roles of config/rbac that are bound
// to it, read from the cluster. Of an overlay for one namespace no role for all
// namespaces is among them but the reviews that authenticate readers of metrics.
func grants(ctx context.Context, overlay string) map[right]bool {
	GinkgoHelper()
	var rules []rbacv1.PolicyRule
	everywhere, here := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	Expect(k8s.List(ctx, everywhere)).To(Succeed())
	Expect(k8s.List(ctx, here)).To(Succeed())
	var clusterRoles []string
	for _, binding := range everywhere.Items {
		if binds(binding.Subjects) {
			clusterRoles = append(clusterRoles, binding.RoleRef.Name)
			rules = append(rules, site.Read(ctx, ground, "", binding.RoleRef.Name, &rbacv1.ClusterRole{}).Rules...)
		}
	}
	for _, binding := range here.Items {
		if binds(binding.Subjects) {
			Expect(binding.RoleRef.Kind).To(Equal("Role"))
			Expect(binding.Namespace).To(Equal(namespace))
			rules = append(rules, site.Read(ctx, ground, namespace, binding.RoleRef.Name, &rbacv1.Role{}).Rules...)
		}
	}
	want := []string{"ensign-metrics-auth"}
	if overlay != "namespaced" {
		want = append(want, manager)
	}
	Expect(clusterRoles).To(ConsistOf(want))
	all := map[right]bool{}
	for _, rule := range rules {
		Expect(rule.NonResourceURLs).To(BeEmpty())
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all[right{group, resource, verb}] = true
				}
			}
		}
	}
	return all
}

// binds reports whether the account is among the subjects.
func binds(subjects []rbacv1.Subject) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		return s.Kind == "ServiceAccount" && s.Namespace == namespace && s.Name == manager
	})
}

// reasons are those of testdata/unused.tsv.
func reasons() map[right]string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("testdata", "unused.tsv"))
	Expect(err).NotTo(HaveOccurred())
	all := map[right]string{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		Expect(fields).To(HaveLen(4), line)
		Expect(fields[3]).NotTo(BeEmpty(), line)
		all[right{fields[0], fields[1], fields[2]}] = fields[3]
	}
	return all
}

// verbs are those that a ClusterRole of the cluster has for a resource of ours.
func verbs(ctx context.Context, role, resource string) (found []string) {
	GinkgoHelper()
	for _, rule := range site.Read(ctx, ground, "", role, &rbacv1.ClusterRole{}).Rules {
		if slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) {
			found = append(found, rule.Verbs...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
