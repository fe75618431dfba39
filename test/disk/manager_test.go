package disk

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

const group = "disk.ensign.io"

// definition is the CRD of the only kind, whose spec and status take anything.
func definition() *apiextensionsv1.CustomResourceDefinition {
	anything := true
	free := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "items." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "items", Singular: "item", Kind: "Item", ListKind: "ItemList"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": free, "status": free},
				}},
			}},
		},
	}
}

// manager is bin/manager as a process of its own, with one watch in one namespace.
type manager struct {
	*gexec.Session
	namespace, runs, health string
}

// startManager starts one that keeps its runs in a directory. environment is the
// Python environment's; "" is the real one.
func startManager(ctx context.Context, runs, environment string, args ...string) *manager {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "disk-"}}
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	project := GinkgoT().TempDir()
	for name, text := range map[string]string{
		"watches.yaml": "- {group: " + group + ", version: v1, kind: Item, playbook: play.yml}\n",
		"play.yml":     "- hosts: localhost\n  gather_facts: false\n  tasks:\n" + quick,
	} {
		Expect(os.WriteFile(filepath.Join(project, name), []byte(text), 0o600)).To(Succeed())
	}
	m := &manager{namespace: namespace.Name, runs: runs, health: freeAddress()}
	command := exec.Command(filepath.Join(root, "bin", "manager"), append([]string{
		"run", "--kubeconfig=" + cluster.Kubeconfig, "--run-dir=" + runs, "--max-backoff=5s",
		"--metrics-bind-address=0", "--health-probe-bind-address=" + m.health, "--user-metrics-bind-address=0",
	}, append(harness.Mode(), args...)...)...)
	command.Dir = project
	command.Env = append(os.Environ(), "KUBECONFIG=", "KUBERNETES_SERVICE_HOST=", "WATCH_NAMESPACE="+namespace.Name)
	if environment != "" {
		command.Env = append(command.Env, "VIRTUAL_ENV="+environment)
	}
	var err error
	m.Session, err = gexec.Start(command, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { m.Terminate().Wait(patience) })
	Eventually(m.log).Should(MatchRegexp(`watching.*Kind=Item"`))
	return m
}

func (m *manager) log() string { return string(m.Err.Contents()) }

// create makes items with these names.
func (m *manager) create(ctx context.Context, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		Expect(k8s.Create(ctx, m.item(name))).To(Succeed())
	}
}

// item is an item of that name, as it is before it is created.
func (m *manager) item(name string) *unstructured.Unstructured {
	item := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	item.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Item"})
	item.SetNamespace(m.namespace)
	item.SetName(name)
	return item
}

// told counts the items for which a condition is true with a message that has
// the text in it.
func (m *manager) told(condition, text string) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		items := &unstructured.UnstructuredList{}
		items.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "ItemList"})
		if err := k8s.List(ctx, items, client.InNamespace(m.namespace)); err != nil {
			return 0, err
		}
		found := 0
		for _, item := range items.Items {
			list, _, err := unstructured.NestedSlice(item.Object, "status", "conditions")
			if err != nil {
				return 0, err
			}
			for _, entry := range list {
				c := entry.(map[string]any)
				if c["type"] == condition && c["status"] == "True" && strings.Contains(c["message"].(string), text) {
					found++
				}
			}
		}
		return found, nil
	}
}

// files counts the open files of the process.
func (m *manager) files() int {
	GinkgoHelper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", m.Command.Process.Pid))
	Expect(err).NotTo(HaveOccurred())
	return len(entries)
}

// limitFiles lets the process open so many files, and gives the limit before.
func (m *manager) limitFiles(limit uint64) (before uint64) {
	GinkgoHelper()
	var old unix.Rlimit
	Expect(unix.Prlimit(m.Command.Process.Pid, unix.RLIMIT_NOFILE, nil, &old)).To(Succeed())
	Expect(unix.Prlimit(m.Command.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: old.Max}, nil)).To(Succeed())
	return old.Cur
}

// runProcesses lists the processes of runs.
func (m *manager) runProcesses() []string {
	GinkgoHelper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	Expect(err).NotTo(HaveOccurred())
	var found []string
	for _, entry := range entries {
		environment, err := os.ReadFile(filepath.Join(entry, "environ"))
		if err != nil || !strings.Contains(string(environment), "KUBECONFIG="+m.runs) {
			continue // It ended meanwhile, or is not ours.
		}
		if line, err := os.ReadFile(filepath.Join(entry, "cmdline")); err == nil && len(line) > 0 {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func freeAddress() string {
	GinkgoHelper()
	address, err := harness.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	return address
}

// stub makes a Python environment whose ansible-runner starts a process in the
// background, which its run has to end, and succeeds after 0.2 s.
func stub() string {
	GinkgoHelper()
	dir := filepath.Join(GinkgoT().TempDir(), "venv")
	python, err := json.Marshal(map[string]any{"python": "3.13.0", "ansible_core": "2.21.5", "ansible_runner": "2.4.3", "collections": []string{}, "installed": []string{}, "contents": []string{}})
	Expect(err).NotTo(HaveOccurred())
	Expect(os.MkdirAll(filepath.Join(dir, "bin"), 0o700)).To(Succeed())
	for name, script := range map[string]string{
		"python3":          "case \"$1\" in *ensign_run.py) shift; exec ansible-runner \"$@\" ;; esac\necho '" + string(python) + "'",
		"ansible-playbook": "",
		"ansible-runner": `if [ -z "$JOB_ID" ]; then
  echo '{"event": "runner_on_ok", "event_data": {"task": "canary", "res": {"msg": ["{{ 6*7 }}"]}}}'
  exit 0
fi
setsid sleep 600 >/dev/null 2>&1 </dev/null &
sleep 0.2
printf '{"event": "playbook_on_stats", "job_id": %s, "event_data": {"ok": {"localhost": 1}, "processed": {"localhost": 1}}}\n' "$JOB_ID"`,
	} {
		Expect(os.WriteFile(filepath.Join(dir, "bin", name), []byte("#!/bin/sh\n"+script+"\n"), 0o700)).To(Succeed())
	}
	return dir
}

var _ = Describe("a manager", func() {
	It("reports a full disk, and goes on by itself when there is room", func(ctx context.Context) {
		d := newDisk(2000, 2000)
		m := startManager(ctx, filepath.Join(d.path, "runs"), "")
		d.fill()
		m.create(ctx, "one", "two")
		Eventually(ctx, m.told("Failure", "the disk of the run directory has no space")).Should(Equal(2))
		d.free()
		Eventually(ctx, m.told("Successful", "")).Should(Equal(2))
	})

	It("ends when it is told to though it may open no file", func(ctx context.Context) {
		m := startManager(ctx, filepath.Join(newDisk(20_000, 20_000).path, "runs"), stub())
		m.create(ctx, "first")
		Eventually(ctx, m.told("Successful", "")).Should(Equal(1))
		limit := m.limitFiles(3)
		DeferCleanup(func() {
			if m.ExitCode() < 0 {
				m.limitFiles(limit)
			}
		})
		Eventually(m.Terminate()).Should(gexec.Exit(0))
		Eventually(m.runProcesses).Should(BeEmpty())
	})
})

// proxy is the address of the API proxy.
func (m *manager) proxy() string {
	GinkgoHelper()
	found := regexp.MustCompile(`"API proxy", "addr": "([^"]+)"`).FindStringSubmatch(m.log())
	Expect(found).To(HaveLen(2))
	return found[1]
}

// ask sends a GET request and tells when an answer has come, whatever it is.
func ask(url string) <-chan error {
	answer := make(chan error, 1)
	go func() {
		// The proxy's certificate is made at its start, and signed by nobody.
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		response, err := c.Get(url)
		if err == nil {
			err = response.Body.Close()
		}
		answer <- err
	}()
	return answer
}

func numbered(name string, count int) []string {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("%s-%02d", name, i))
	}
	return names
}

// visible lists the directories of resources in a run directory, in which there
// must be artifacts alone.
func visible(runs string) []string {
	GinkgoHelper()
	entries, err := filepath.Glob(filepath.Join(runs, "[^.]*"))
	Expect(err).NotTo(HaveOccurred())
	for _, entry := range entries {
		inside, err := os.ReadDir(entry)
		Expect(err).NotTo(HaveOccurred())
		Expect(inside).To(ConsistOf(HaveField("Name()", "artifacts")))
	}
	return entries
}
