package children

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("streaming requests (§8)", Label("long"), Ordered, ContinueOnFailure, func() {
	var (
		k         *site.Kubelet
		namespace string
		config    string // of the run
	)

	BeforeAll(func(ctx context.Context) {
		r := newRun(ctx, box, ground.Namespace(ctx), "cr")
		namespace = r.owner.Namespace
		kubeconfig, revoke, err := way.Grant(r.owner)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(revoke)
		dir, err := os.MkdirTemp("", "own")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		config = filepath.Join(dir, "kubeconfig")
		Expect(os.WriteFile(config, kubeconfig, 0o600)).To(Succeed())
		k = ground.Kubelet(ctx)
		k.Pod(ctx, namespace, "p")
	})

	// kubectl runs it as a client of the proxy.
	kubectl := func(ctx context.Context, websockets bool, args ...string) *exec.Cmd {
		command := exec.CommandContext(ctx, cluster.Kubectl, append([]string{"--kubeconfig=" + config}, args...)...)
		command.WaitDelay = time.Second
		command.Env = append(os.Environ(),
			fmt.Sprintf("KUBECTL_REMOTE_COMMAND_WEBSOCKETS=%v", websockets), fmt.Sprintf("KUBECTL_PORT_FORWARD_WEBSOCKETS=%v", websockets))
		return command
	}

	for name, websockets := range map[string]bool{"WebSockets": true, "SPDY": false} {
		It("passes in both directions at once: exec by "+name, func(ctx context.Context) {
			command := kubectl(ctx, websockets, "exec", "-i", "p", "--", "sh", "-c", "read a; echo $a; read b; echo $b")
			in, err := command.StdinPipe()
			Expect(err).NotTo(HaveOccurred())
			out := gbytes.NewBuffer()
			command.Stdout, command.Stderr = out, GinkgoWriter
			Expect(command.Start()).To(Succeed())
			for _, line := range []string{"one", "two"} { // The second only when the first is back.
				_, err := io.WriteString(in, line+"\n")
				Expect(err).NotTo(HaveOccurred())
				Eventually(out).Should(gbytes.Say(line))
			}
			Expect(in.Close()).To(Succeed())
			Expect(command.Wait()).To(Succeed())
		})

		It("tells how it ended: exec by "+name, func(ctx context.Context) {
			command := kubectl(ctx, websockets, "exec", "p", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
			var out, errors bytes.Buffer
			command.Stdout, command.Stderr = &out, &errors
			err := command.Run()
			Expect(err).To(HaveOccurred())
			Expect(out.String()).To(Equal("out\n"))
			Expect(errors.String()).To(And(HavePrefix("err\n"), ContainSubstring("exit status 7"))) // As kwok says it.
		})

		It("passes later output: attach by "+name, func(ctx context.Context) {
			follows(k, kubectl(ctx, websockets, "attach", "p"))
		})

		It("passes connections: port-forward by "+name, func(ctx context.Context) {
			command := kubectl(ctx, websockets, "port-forward", "p", ":80")
			out := gbytes.NewBuffer()
			command.Stdout, command.Stderr = out, GinkgoWriter
			start(command)
			said := regexp.MustCompile(`127\.0\.0\.1:(\d+)`)
			Eventually(func() []byte { return said.Find(out.Contents()) }).ShouldNot(BeEmpty())
			conn, err := net.Dial("tcp", string(said.Find(out.Contents())))
			Expect(err).NotTo(HaveOccurred())
			defer func() { _ = conn.Close() }()
			Expect(conn.SetDeadline(time.Now().Add(harness.WaitTimeout))).To(Succeed())
			back := bufio.NewReader(conn)
			for _, line := range []string{"one\n", "two\n"} {
				_, err := io.WriteString(conn, line)
				Expect(err).NotTo(HaveOccurred())
				Expect(back.ReadString('\n')).To(Equal(line))
			}
		})
	}

	It("passes later lines: logs -f", func(ctx context.Context) {
		follows(k, kubectl(ctx, true, "logs", "-f", "p"))
	})

	It("passes later events: a watch", func(ctx context.Context) {
		command := kubectl(ctx, true, "get", "configmaps", "--watch", "-o", "name")
		out := gbytes.NewBuffer()
		command.Stdout, command.Stderr = out, GinkgoWriter
		start(command)
		for _, name := range []string{"first", "second"} {
			Expect(k8s.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})).To(Succeed())
			Eventually(out).Should(gbytes.Say("configmap/" + name))
		}
	})
})

// start starts a command that ends with the spec.
func start(command *exec.Cmd) {
	GinkgoHelper()
	command.WaitDelay = time.Second // Its own processes may hold its output.
	Expect(command.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
}

// follows shows that lines reach the command while it follows the log.
func follows(k *site.Kubelet, command *exec.Cmd) {
	GinkgoHelper()
	out := gbytes.NewBuffer()
	command.Stdout, command.Stderr = out, GinkgoWriter
	start(command)
	for n := range 3 {
		// An attached client sees what comes from then on.
		Eventually(func() *gbytes.Buffer { k.Write(fmt.Sprintf("line %d", n)); return out }).WithPolling(time.Second / 4).
			Should(gbytes.Say(fmt.Sprintf("line %d", n)))
	}
}
