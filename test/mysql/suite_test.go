package mysql

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
	"github.com/ensign-operator/ensign/test/mariadb"
)

var (
	ground *site.Ground
	// operator has one manager for all specs, each of which has a namespace.
	operator *site.Site
	server   *mariadb.Server
	// home is the namespace of a MySQLCluster that all namespaces may use.
	home string
)

func TestMySQL(t *testing.T) {
	site.Run(t, "mysql", harness.WaitTimeout, 200*time.Millisecond)
}

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, controlplane.Options{})
	out, err := exec.CommandContext(ctx, ground.Cluster.Kubectl, "--kubeconfig="+ground.Cluster.Kubeconfig, "apply",
		"--filename="+filepath.Join(ground.Root, "config", "crd", "bases")).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	server = newServer(ctx, mariadb.Options{})
	operator = ground.Site(ctx, nil)
	operator.Options.Project, operator.Options.Namespace = ground.Root, ""
	operator.Start(ctx, "MySQLCluster", "MySQLDatabase", "MySQLEndpoint", "MySQLUser")
	home = newPlace(ctx)
	c := clusterOf(home, server)
	succeed(ctx, c)
	change(ctx, c, "allowedNamespaces", []any{"*"})
	succeed(ctx, c)
})

// newServer starts a server, which ends with the spec or suite.
func newServer(ctx context.Context, options mariadb.Options) *mariadb.Server {
	GinkgoHelper()
	s, err := mariadb.Start(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(s.Stop()).To(Succeed()) })
	return s
}
