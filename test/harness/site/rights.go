package site

import (
	"context"
	"path/filepath"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Limit lets the site's managers work with the rights of an account that has these
// and no others.
func (s *Site) Limit(ctx context.Context, rules ...rbacv1.PolicyRule) *corev1.ServiceAccount {
	ginkgo.GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "limited"}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-limited"}, Rules: rules}
	s.Create(ctx, account, role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: s.Namespace, Name: account.Name}},
	})
	s.ActAs(ctx, account)
	return account
}

// ActAs lets the site's managers work with the rights of an account.
func (s *Site) ActAs(ctx context.Context, account *corev1.ServiceAccount) {
	ginkgo.GinkgoHelper()
	config, err := clientcmd.LoadFromFile(s.ground.Cluster.Kubeconfig)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: s.ground.Token(ctx, account)}
	}
	s.Options.Kubeconfig = filepath.Join(s.Dir, account.Name+".kubeconfig")
	gomega.Expect(clientcmd.WriteToFile(*config, s.Options.Kubeconfig)).To(gomega.Succeed())
}

// Token returns a token of an account.
func (g *Ground) Token(ctx context.Context, account *corev1.ServiceAccount) string {
	ginkgo.GinkgoHelper()
	token := &authenticationv1.TokenRequest{}
	gomega.Expect(g.Client.SubResource("token").Create(ctx, account, token)).To(gomega.Succeed())
	return token.Status.Token
}
