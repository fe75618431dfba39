package jobs

import (
	"cmp"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/pkg/ensign"
	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/pods"
	"github.com/ensign-operator/ensign/test/harness/script"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const group = "jobs.example.com"

var (
	program     = flag.String("manager", "", "the manager under test; by default the one in bin")
	waitTimeout = flag.Duration("wait-timeout", harness.WaitTimeout, "when specs that hang fail")
)

var (
	ground *site.Ground
	node   *pods.Node
	// work is the kind of a play that the test plays, deed that of a playbook for the real Ansible.
	work = schema.GroupKind{Group: group, Kind: "Work"}
	deed = schema.GroupKind{Group: group, Kind: "Deed"}
	// freight is the kind of a chart.
	freight = schema.GroupKind{Group: group, Kind: "Freight"}
	// played is the Python environment that the test plays, journal what its runs write.
	played, journal string
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == ensign.AgentCommand {
		if err := runErrand(); err != nil {
			panic(err)
		}
		return
	}
	script.Main(play)
	os.Exit(m.Run())
}

func TestJobs(t *testing.T) { site.Run(t, "jobs", *waitTimeout, 50*time.Millisecond) }

var _ = BeforeSuite(func(ctx context.Context) {
	ground = site.Prepare(ctx, controlplane.Options{LeaveNodes: true, AdmitServiceAccounts: true})
	ground.Define(ctx, harness.Definition(work), harness.Definition(deed), harness.Definition(freight), harness.Definition(errand))
	dir, err := os.MkdirTemp("", "pods") // Short: sockets are below it.
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	played, journal = filepath.Join(dir, "script"), filepath.Join(dir, "journal")
	Expect(script.Environment(played)).To(Succeed())
	own, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	node, err = pods.Start(ctx, ground.Cluster.Config, pods.Options{
		Dir: dir, Programs: map[string]string{"manager": cmp.Or(*program, filepath.Join(ground.Root, "bin", "manager")), "errands": own},
		Env: []string{"PATH=" + os.Getenv("PATH"), wire.EnvTokenFile + "=" + wire.TokenFile, wire.EnvTerminationFile + "=" + wire.TerminationFile, journalVariable + "=" + journal},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(node.Stop)
})
