package controlplane_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("devcluster", Ordered, func() {
	var program, bin, dir string

	BeforeAll(func() {
		var err error
		program, err = gexec.Build("github.com/ensign-operator/ensign/hack/devcluster")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(gexec.CleanupBuildArtifacts)
		bin, err = filepath.Abs(filepath.Join("..", "..", "bin", "controlplane"))
		Expect(err).NotTo(HaveOccurred())
	})

	BeforeEach(func() { dir = GinkgoT().TempDir() })

	start := func(ctx SpecContext, args ...string) *gexec.Session {
		GinkgoHelper()
		command := exec.Command(program, append([]string{"--bin", bin}, args...)...)
		command.Dir = dir
		command.Env = append(os.Environ(), "TMPDIR="+dir)
		session, err := gexec.Start(command, GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { session.Kill().Wait(waitTimeout) })
		Eventually(session).WithContext(ctx).Should(gbytes.Say(`ready after`))
		return session
	}
	kubeconfig := func(name string) string { return filepath.Join(dir, ".dev", name) }
	nodes := func(ctx SpecContext, name string) []corev1.Node {
		GinkgoHelper()
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig(name))
		Expect(err).NotTo(HaveOccurred())
		c, err := client.New(config, client.Options{})
		Expect(err).NotTo(HaveOccurred())
		list := &corev1.NodeList{}
		Expect(c.List(ctx, list)).To(Succeed())
		return list.Items
	}
	// Only the program itself, which works in dir, may be left while it ends.
	expectNothingLeft := func() {
		GinkgoHelper()
		Expect(processesIn(dir)).To(BeEmpty())
		Expect(filepath.Glob(filepath.Join(dir, "ensign-controlplane-*"))).To(BeEmpty())
		Expect(filepath.Glob(kubeconfig("*"))).To(BeEmpty())
	}

	It("runs beside another, each with a kubeconfig, until Ctrl-C or SIGTERM", func(ctx SpecContext) {
		first := start(ctx)
		second := start(ctx)
		Expect(string(second.Out.Contents())).To(ContainSubstring(".dev/kubeconfig belongs to a running cluster; this one takes .dev/kubeconfig-2"))
		Expect(nodes(ctx, "kubeconfig")).To(HaveLen(1))
		Expect(nodes(ctx, "kubeconfig-2")).To(HaveLen(1))

		Eventually(first.Interrupt()).WithContext(ctx).Should(gexec.Exit(0))
		Expect(kubeconfig("kubeconfig")).NotTo(BeAnExistingFile())
		Expect(nodes(ctx, "kubeconfig-2")).To(HaveLen(1))
		Eventually(second.Terminate()).WithContext(ctx).Should(gexec.Exit(0))
		expectNothingLeft()
	})

	It("starts again after it was killed, with the data to keep", func(ctx SpecContext) {
		killed := start(ctx, "--data", "data")
		before := nodes(ctx, "kubeconfig")
		output, err := exec.Command(program, "--bin", bin, "--data", filepath.Join(dir, "data"), "--kubeconfig", kubeconfig("other")).CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(string(output)).To(ContainSubstring("data directory in use by a running control plane"))
		Eventually(killed.Kill()).WithContext(ctx).Should(gexec.Exit())
		Eventually(func() map[int]string { return processesIn(dir) }).WithContext(ctx).Should(BeEmpty())

		again := start(ctx, "--data", "data")
		Expect(string(again.Out.Contents())).NotTo(ContainSubstring("kubeconfig-2"), "a dead cluster's file is taken over")
		Expect(nodes(ctx, "kubeconfig")).To(ConsistOf(HaveField("UID", before[0].UID)))
		Eventually(again.Terminate()).WithContext(ctx).Should(gexec.Exit(0))
		expectNothingLeft()
	})

	It("ends a boot that is interrupted", func(ctx SpecContext) {
		command := exec.Command(program, "--bin", bin)
		command.Dir = dir
		command.Env = append(os.Environ(), "TMPDIR="+dir)
		session, err := gexec.Start(command, GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() map[int]string { return processesIn(dir) }).WithContext(ctx).Should(ContainElement("etcd"))
		Eventually(session.Signal(syscall.SIGTERM)).WithContext(ctx).Should(gexec.Exit(0))
		Expect(session).To(gbytes.Say("interrupted during the boot"))
		expectNothingLeft()
	})
})
