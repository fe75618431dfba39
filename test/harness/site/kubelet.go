package site

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
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
spec: {logs: [{logsFile: %[1]s, previousLogsFile: %[1]s.previous, follow: true}]}
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

// nodeName is that of its node.
const nodeName = "kubelet"

// Kubelet is one that answers the API server for the pods of a node, by the code of
// kubelets: kwok's.
type Kubelet struct {
	ground *Ground
	log    string
}

// Write adds a line to the log of the pods.
func (k *Kubelet) Write(line string) { add(k.log, line) }

// WritePrevious adds a line to the log of their containers before.
func (k *Kubelet) WritePrevious(line string) { add(k.log+".previous", line) }

func add(log, line string) {
	ginkgo.GinkgoHelper()
	file, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = fmt.Fprintf(file, "%s stdout F %s\n", time.Now().UTC().Format(time.RFC3339Nano), line)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(file.Close()).To(gomega.Succeed())
}

// Kubelet starts kwok's kubelet, and makes a node of which it is. There is one of a
// cluster; it ends with the spec or container.
func (g *Ground) Kubelet(ctx context.Context) *Kubelet {
	ginkgo.GinkgoHelper()
	dir, err := os.MkdirTemp("", "kubelet")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(os.RemoveAll, dir)
	k := &Kubelet{ground: g, log: filepath.Join(dir, "log")}
	gomega.Expect(os.WriteFile(k.log, nil, 0o600)).To(gomega.Succeed())
	settings := filepath.Join(dir, "kwok.yaml")
	gomega.Expect(os.WriteFile(settings, fmt.Appendf(nil, kubeletConfig, k.log, startEcho()), 0o600)).To(gomega.Succeed())
	address, err := harness.FreeAddress()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	command := exec.Command(filepath.Join(g.Root, "bin", "controlplane", "kwok"), "--kubeconfig="+g.Cluster.Kubeconfig,
		"--config="+filepath.Join(g.Root, "bin", "controlplane", "stages.yaml"), "--config="+settings, "--server-address="+address, "--manage-single-node=nobody")
	command.Stdout, command.Stderr = ginkgo.GinkgoWriter, ginkgo.GinkgoWriter
	command.WaitDelay = time.Second // Its own processes may hold its output.
	gomega.Expect(command.Start()).To(gomega.Succeed())
	ginkgo.DeferCleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	gomega.Eventually(func() error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return err
	}).Should(gomega.Succeed())
	// The cluster's own kwok makes it ready, by patches of what it has seen earlier: they
	// take away addresses that come later than the node, unless both kinds are there.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}, Status: corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}, {Type: corev1.NodeHostName, Address: "127.0.0.1"}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: portOf(address)}},
	}}
	gomega.Expect(g.Client.Create(ctx, node)).To(gomega.Succeed())
	return k
}

// Pod makes one on the kubelet's node, and waits until it runs.
func (k *Kubelet) Pod(ctx context.Context, namespace, name string) {
	ginkgo.GinkgoHelper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{
		NodeName: nodeName, Containers: []corev1.Container{{Name: "c", Image: "nothing", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}},
	}}
	// The namespace's account may be to come.
	gomega.Eventually(func() error { return k.ground.Client.Create(ctx, pod) }).Should(gomega.Succeed())
	gomega.Eventually(func() (corev1.PodPhase, error) {
		err := k.ground.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase, err
	}).Should(gomega.Equal(corev1.PodRunning))
}

// startEcho serves connections that get back what they send, and gives its port.
func startEcho() int32 {
	ginkgo.GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(listener.Close)
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
	return portOf(listener.Addr().String())
}

func portOf(address string) int32 {
	ginkgo.GinkgoHelper()
	_, text, err := net.SplitHostPort(address)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	port, err := strconv.ParseInt(text, 10, 32)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return int32(port)
}
