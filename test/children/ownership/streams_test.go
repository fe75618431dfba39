package ownership

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubeletConfig lets kwok's kubelet run commands of any pod here, follow a file for its
// logs, and forward its ports to one of ours.
const kubeletConfig = `
kind: ClusterExec
apiVersion: kwok.x-k8s.io/v1alpha1
metadata: {name: all}
spec: {execs: [{local: {workDir: /}}]}
---
kind: ClusterLogs
apiVersion: kwok.x-k8s.io/v1alpha1
metadata: {name: all}
spec: {logs: [{logsFile: %[1]s, follow: true}]}
---
kind: ClusterAttach
apiVersion: kwok.x-k8s.io/v1alpha1
metadata: {name: all}
spec: {attaches: [{logsFile: %[1]s}]}
---
kind: ClusterPortForward
apiVersion: kwok.x-k8s.io/v1alpha1
metadata: {name: all}
spec: {forwards: [{target: {address: 127.0.0.1, port: %[2]d}}]}
`

// kubelet is one that answers the API server for the pods of a node, by the code of
// kubelets: kwok's.
type kubelet struct{ log string }

var _ = Describe("what streams", Ordered, ContinueOnFailure, func() {
	var (
		k         *kubelet
		namespace string
		config    string // of the run
	)

	BeforeAll(func(ctx context.Context) {
		r := newRun(ctx, box, newNamespace(ctx), "cr")
		namespace = r.owner.Namespace
		kubeconfig, revoke, err := way.Grant(r.owner)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(revoke)
		dir, err := os.MkdirTemp("", "own")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		config = filepath.Join(dir, "kubeconfig")
		Expect(os.WriteFile(config, kubeconfig, 0o600)).To(Succeed())
		k = startKubelet(ctx, dir)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}, Spec: corev1.PodSpec{
			NodeName: "kubelet", Containers: []corev1.Container{{Name: "c", Image: "nothing", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}},
		}}
		Expect(k8s.Create(ctx, pod)).To(Succeed())
		Eventually(func() corev1.PodPhase {
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
			return pod.Status.Phase
		}).Should(Equal(corev1.PodRunning))
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
				Eventually(out).WithTimeout(20 * time.Second).Should(gbytes.Say(line))
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

		It("passes what comes later: attach by "+name, func(ctx context.Context) {
			k.follows(kubectl(ctx, websockets, "attach", "p"))
		})

		It("passes connections: port-forward by "+name, func(ctx context.Context) {
			command := kubectl(ctx, websockets, "port-forward", "p", ":80")
			out := gbytes.NewBuffer()
			command.Stdout, command.Stderr = out, GinkgoWriter
			start(command)
			said := regexp.MustCompile(`127\.0\.0\.1:(\d+)`)
			Eventually(func() []byte { return said.Find(out.Contents()) }).WithTimeout(20 * time.Second).ShouldNot(BeEmpty())
			conn, err := net.Dial("tcp", string(said.Find(out.Contents())))
			Expect(err).NotTo(HaveOccurred())
			defer func() { _ = conn.Close() }()
			Expect(conn.SetDeadline(time.Now().Add(time.Minute))).To(Succeed())
			back := bufio.NewReader(conn)
			for _, line := range []string{"one\n", "two\n"} {
				_, err := io.WriteString(conn, line)
				Expect(err).NotTo(HaveOccurred())
				Expect(back.ReadString('\n')).To(Equal(line))
			}
		})
	}

	It("passes what comes later: logs -f", func(ctx context.Context) {
		k.follows(kubectl(ctx, true, "logs", "-f", "p"))
	})

	It("passes what comes later: a watch", func(ctx context.Context) {
		command := kubectl(ctx, true, "get", "configmaps", "--watch", "-o", "name")
		out := gbytes.NewBuffer()
		command.Stdout, command.Stderr = out, GinkgoWriter
		start(command)
		for _, name := range []string{"first", "second"} {
			Expect(k8s.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})).To(Succeed())
			Eventually(out).WithTimeout(20 * time.Second).Should(gbytes.Say("configmap/" + name))
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
func (k *kubelet) follows(command *exec.Cmd) {
	GinkgoHelper()
	out := gbytes.NewBuffer()
	command.Stdout, command.Stderr = out, GinkgoWriter
	start(command)
	for n := range 3 {
		// An attached client sees what comes from then on.
		Eventually(func() *gbytes.Buffer { k.write(fmt.Sprintf("line %d", n)); return out }).WithTimeout(20 * time.Second).WithPolling(time.Second / 4).
			Should(gbytes.Say(fmt.Sprintf("line %d", n)))
	}
}

// write adds a line to the log of the pods.
func (k *kubelet) write(line string) {
	GinkgoHelper()
	file, err := os.OpenFile(k.log, os.O_APPEND|os.O_WRONLY, 0)
	Expect(err).NotTo(HaveOccurred())
	_, err = fmt.Fprintf(file, "%s stdout F %s\n", time.Now().UTC().Format(time.RFC3339Nano), line)
	Expect(err).NotTo(HaveOccurred())
	Expect(file.Close()).To(Succeed())
}

// startKubelet starts kwok's kubelet, and makes a node of which it is.
func startKubelet(ctx context.Context, dir string) *kubelet {
	GinkgoHelper()
	k := &kubelet{log: filepath.Join(dir, "log")}
	Expect(os.WriteFile(k.log, nil, 0o600)).To(Succeed())
	settings := filepath.Join(dir, "kwok.yaml")
	Expect(os.WriteFile(settings, fmt.Appendf(nil, kubeletConfig, k.log, startEcho()), 0o600)).To(Succeed())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	address := listener.Addr().(*net.TCPAddr)
	Expect(listener.Close()).To(Succeed())
	command := exec.Command(filepath.Join(root, "bin", "controlplane", "kwok"), "--kubeconfig="+cluster.Kubeconfig,
		"--config="+filepath.Join(root, "bin", "controlplane", "stages.yaml"), "--config="+settings, "--server-address="+address.String(), "--manage-single-node=nobody")
	command.Stdout, command.Stderr = GinkgoWriter, GinkgoWriter
	start(command)
	Eventually(func() error {
		conn, err := net.Dial("tcp", address.String())
		if err == nil {
			err = conn.Close()
		}
		return err
	}).Should(Succeed())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kubelet", Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}}}
	Expect(k8s.Create(ctx, node)).To(Succeed())
	Eventually(func() error { // Against the cluster's own kwok, which writes the status too.
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		if len(node.Status.Conditions) == 0 {
			return fmt.Errorf("node %s has no status yet", node.Name)
		}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(address.Port)
		err := k8s.Status().Update(ctx, node)
		if apierrors.IsConflict(err) {
			return err
		}
		Expect(err).NotTo(HaveOccurred())
		return nil
	}).Should(Succeed())
	return k
}

// startEcho serves connections that get back what they send, and gives its port.
func startEcho() int {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(listener.Close)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}
