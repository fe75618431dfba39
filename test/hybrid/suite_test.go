package hybrid

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const example = "../../examples/hybrid"

var waitTimeout = flag.Duration("wait-timeout", harness.WaitTimeout, "when specs that hang fail")

var (
	ground *site.Ground
	// project is a copy of the example, with its program in bin.
	project string
	// webhook is where the program serves it.
	webhook string
	// account is that of config/rbac.
	account  = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "hybrid-system", Name: "hybrid-manager"}}
	auditLog string
)

func TestHybrid(t *testing.T) { site.Run(t, "hybrid", *waitTimeout, 50*time.Millisecond) }

var _ = BeforeSuite(func(ctx context.Context) {
	dir, err := os.MkdirTemp("", "hybrid") // Short: sockets are below it.
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	project, auditLog = filepath.Join(dir, "project"), filepath.Join(dir, "audit.log")
	ground = site.Prepare(ctx, controlplane.Options{AuditLog: auditLog, CheckOwnerReferences: true})
	Expect(os.CopyFS(project, os.DirFS(example))).To(Succeed())
	bin := filepath.Join(project, "bin")
	Expect(os.RemoveAll(bin)).To(Succeed())
	run(ctx, example, "go", "build", "-buildvcs=false", "-o", bin+"/", "./cmd")
	Expect(os.Rename(filepath.Join(bin, "cmd"), filepath.Join(bin, "manager"))).To(Succeed())
	Expect(os.Symlink(filepath.Join(ground.Root, "bin", "chart-exec"), filepath.Join(bin, "chart-exec"))).To(Succeed())
	webhook, err = harness.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	deploy(ctx)
})

// deploy applies config/default, as `make deploy` does, without the Deployment: its program runs here.
// So the API server reaches the webhook at an address of this machine.
func deploy(ctx context.Context) {
	GinkgoHelper()
	certificates := filepath.Join(project, "config", "webhook", "certs")
	Expect(os.MkdirAll(certificates, 0o700)).To(Succeed())
	root := strings.TrimSpace(run(ctx, project, "go", "env", "GOROOT"))
	run(ctx, certificates, "go", "run", filepath.Join(root, "src", "crypto", "tls", "generate_cert.go"), "-ca", "-ecdsa-curve=P256", "-host=127.0.0.1")
	for from, to := range map[string]string{"cert.pem": "tls.crt", "key.pem": "tls.key"} {
		Expect(os.Symlink(from, filepath.Join(certificates, to))).To(Succeed())
	}
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(kubectl(ctx, "kustomize", "config/default")), 4096)
	all := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for {
		var object unstructured.Unstructured
		err := documents.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		Expect(err).NotTo(HaveOccurred())
		switch object.GetKind() {
		case "Deployment":
			continue
		case "ValidatingWebhookConfiguration":
			reachHere(&object)
		}
		all.Items = append(all.Items, object)
	}
	text, err := all.MarshalJSON()
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(project, "default.json"), text, 0o600)).To(Succeed())
	kubectl(ctx, "apply", "-f", "default.json")
	// kubectl cannot wait for a condition of an object that has none.
	for _, until := range []string{"--for=jsonpath={.status.conditions[0].type}", "--for=condition=Established"} {
		kubectl(ctx, "wait", until, "crd/memcacheds.cache.my.domain", "crd/memcachedbackups.cache.my.domain", "crd/memcachedclients.cache.my.domain", "--timeout=5m")
	}
}

// reachHere points a webhook at the program here. The bundle of certificates stays as kustomize has
// put it there.
func reachHere(object *unstructured.Unstructured) {
	GinkgoHelper()
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	Expect(err).NotTo(HaveOccurred())
	Expect(webhooks).To(HaveLen(1))
	config := webhooks[0].(map[string]any)["clientConfig"].(map[string]any)
	service := config["service"].(map[string]any)
	Expect(service).To(And(HaveKeyWithValue("name", "hybrid-webhook"), HaveKeyWithValue("namespace", "hybrid-system")))
	config["url"] = "https://" + webhook + service["path"].(string)
	delete(config, "service")
	Expect(base64.StdEncoding.DecodeString(config["caBundle"].(string))).To(ContainSubstring("BEGIN CERTIFICATE"))
	Expect(unstructured.SetNestedSlice(object.Object, webhooks, "webhooks")).To(Succeed())
}

// run returns what a program prints; it has to succeed.
func run(ctx context.Context, dir, name string, args ...string) string {
	GinkgoHelper()
	output, err := try(ctx, dir, name, args...)
	Expect(err).NotTo(HaveOccurred(), "%s %s: %s", name, strings.Join(args, " "), output)
	return output
}

func try(ctx context.Context, dir, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "KUBECONFIG="+ground.Cluster.Kubeconfig, "CGO_ENABLED=0")
	output, err := command.CombinedOutput()
	return string(output), err
}

// kubectl runs it in the project, as an administrator.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return run(ctx, project, ground.Cluster.Kubectl, args...)
}

// manager is the program of the example at work.
type manager struct {
	command *exec.Cmd
	log     *os.File
}

// start starts the program with the rights of its account.
func start(ctx context.Context) *manager {
	GinkgoHelper()
	log, err := os.CreateTemp(filepath.Dir(project), "log")
	Expect(err).NotTo(HaveOccurred())
	host, port, _ := strings.Cut(webhook, ":")
	Expect(host).To(Equal("127.0.0.1"))
	temporary := filepath.Join(filepath.Dir(project), "tmp")
	Expect(os.MkdirAll(temporary, 0o700)).To(Succeed())
	m := &manager{log: log, command: exec.Command(filepath.Join(project, "bin", "manager"), "--kubeconfig="+kubeconfig(ctx),
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--webhook-port="+port, "--webhook-cert-path=config/webhook/certs")}
	m.command.Dir = project
	m.command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + temporary, "TMPDIR=" + temporary, "ANSIBLE_GATHERING=explicit"}
	m.command.Stdout, m.command.Stderr = log, log
	m.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	Expect(m.command.Start()).To(Succeed())
	return m
}

// kubeconfig returns the path of one with the rights of the account.
func kubeconfig(ctx context.Context) string {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(ground.Cluster.Kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: ground.Token(ctx, account)}
	}
	path := filepath.Join(filepath.Dir(project), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}

// kill ends it as a machine's end does, if it has not ended, and shows its log.
func (m *manager) kill() {
	GinkgoHelper()
	_ = m.command.Process.Kill()
	_ = m.command.Wait()
	text, err := os.ReadFile(m.log.Name())
	GinkgoWriter.Printf("--- the manager's log (%v)\n%s\n", err, text)
}
