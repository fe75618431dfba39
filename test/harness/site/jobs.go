package site

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/pods"
)

// Suites that are not about Jobs run their content in Jobs where harness.InJobs says so.

// startPods starts the node for the pods of runs.
func (g *Ground) startPods(ctx context.Context) {
	ginkgo.GinkgoHelper()
	var err error
	g.PodsDir, err = os.MkdirTemp("", "pods") // Short: sockets are below it.
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(os.RemoveAll, g.PodsDir)
	g.pods, err = pods.Start(ctx, g.Cluster.Config, pods.Options{
		Dir: g.PodsDir, Programs: map[string]string{"manager": filepath.Join(g.Root, "bin", "manager")}, Env: []string{"PATH=" + os.Getenv("PATH")},
	})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(g.pods.Stop)
}

// jobArgs are the flags that managers need to run content in Jobs.
func jobArgs() ([]string, error) {
	address, err := harness.FreeAddress()
	return []string{"--job-bind-address=" + address, "--job-address=" + address}, err
}

// runInJobs lets all watches of roles and playbooks run in Jobs that have the manager's
// environment.
func (s *Site) runInJobs() {
	ginkgo.GinkgoHelper()
	path := filepath.Join(s.Options.Project, "watches.yaml")
	text, err := os.ReadFile(path)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	var watches []map[string]any
	gomega.Expect(yaml.Unmarshal(text, &watches)).To(gomega.Succeed())
	var podSpec map[string]any
	gomega.Expect(yaml.Unmarshal([]byte("{"+pods.Placement+", containers: [{name: manager, image: none, command: [manager]}]}"), &podSpec)).To(gomega.Succeed())
	var env []any
	for _, entry := range s.Options.Env {
		name, value, _ := strings.Cut(entry, "=")
		env = append(env, map[string]any{"name": name, "value": value})
	}
	podSpec["containers"].([]any)[0].(map[string]any)["env"] = env //nolint:forcetypeassert // It is the text above.
	for _, watch := range watches {
		if watch["chart"] == nil {
			watch["executor"], watch["job"] = "job", map[string]any{"podTemplate": map[string]any{"spec": podSpec}}
		}
	}
	text, err = yaml.Marshal(watches)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(os.WriteFile(path, text, 0o600)).To(gomega.Succeed())
	given := fmt.Sprint(s.Options.Args)
	if !strings.Contains(given, "--job-bind-address") {
		args, err := jobArgs()
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		s.Options.Args = append(s.Options.Args, args...)
	}
	if !strings.Contains(given, "--leader-election-namespace") {
		s.Options.Args = append(s.Options.Args, "--leader-election-namespace=default") // Where the Jobs are.
	}
}
