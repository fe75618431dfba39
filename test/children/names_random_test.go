package children

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// liveRun lets a run of a manager give its kubeconfig to the test, and wait.
const liveRun = `
- hosts: localhost
  gather_facts: false
  tasks:
  - ansible.builtin.copy: {src: "{{ lookup('env', 'KUBECONFIG') }}", dest: "{{ kubeconfig }}", mode: "600"}
  - ansible.builtin.wait_for: {path: "{{ over }}", timeout: 86400, sleep: 1}
`

// tryNames makes calls with random values by a live run of a manager, as many rounds of all as
// are asked for, and compares what has reached the API server with what was meant.
func tryNames(ctx context.Context, seed uint64, rounds int) {
	GinkgoHelper()
	p := newOperator(ctx, strings.ReplaceAll(watching(""), "content.yml", "live.yml"), harness.Options{})
	p.Write(map[string]string{"live.yml": liveRun})
	home, others := filepath.Join(p.Dir, "run"), ground.Namespace(ctx)
	var victims []client.Object
	for _, namespace := range []string{p.Namespace, others} {
		for _, name := range []string{"bystander", "sh.helm.release.v1.bystander.v1"} {
			victims = append(victims, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
		}
	}
	victims = append(victims, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: others, Name: "bystander"}})
	for _, victim := range victims {
		Expect(k8s.Create(ctx, victim)).To(Succeed())
	}
	Expect(os.MkdirAll(filepath.Join(home, "chart/templates"), 0o700)).To(Succeed())
	for file, text := range map[string]string{
		"chart/Chart.yaml":       "apiVersion: v2\nname: c\nversion: 0.1.0\n",
		"chart/templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.name | default .Release.Name | toJson }}}\n",
	} {
		Expect(os.WriteFile(filepath.Join(home, file), []byte(text), 0o600)).To(Succeed())
	}
	kubeconfig, over := filepath.Join(home, "kubeconfig"), filepath.Join(home, "over")
	p.start(ctx)
	cr := p.custom("names", map[string]any{"kubeconfig": kubeconfig, "over": over})
	Expect(k8s.Create(ctx, cr)).To(Succeed())
	Eventually(kubeconfig).Should(BeAnExistingFile())
	s := &source{rand.New(rand.NewPCG(seed, 0)), []string{"bystander", others, p.Namespace, "kube-system"}}
	arrived, count := 0, 0
	for range rounds {
		for _, c := range calls(s, p.Namespace) {
			arrived += c.try(ctx, kubeconfig, others, fmt.Sprintf("seed %d, call %d", seed, count))
			count++
		}
	}
	By(fmt.Sprintf("seed %d: %d calls, by which %d requests reached objects", seed, count, arrived))
	Expect(arrived).To(BeNumerically(">", 0))
	for _, victim := range victims {
		before := victim.GetResourceVersion()
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(victim), victim)).To(Succeed())
		Expect(victim.GetResourceVersion()).To(Equal(before), client.ObjectKeyFromObject(victim).String())
	}
	Expect(os.WriteFile(over, nil, 0o600)).To(Succeed())
	p.Settles(cr, 1)
}

// try makes the call, and returns how many requests about objects have reached the API server.
func (c *call) try(ctx context.Context, kubeconfig, others, which string) (arrived int) {
	GinkgoHelper()
	if c.manifest != nil {
		text, err := json.Marshal(c.manifest)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(filepath.Dir(kubeconfig), "manifest.json"), text, 0o600)).To(Succeed())
	}
	log, err := audit.Open(auditLog)
	Expect(err).NotTo(HaveOccurred())
	var said string
	if c.program == kubectl || c.program == helm {
		said, _ = program(ctx, kubeconfig, c.program, c.args...)
	} else {
		said = askAsIs(ctx, kubeconfig, c.program, c.args[0])
	}
	events, err := log.Events(`"userAgent":"`)
	Expect(err).NotTo(HaveOccurred())
	for _, e := range events {
		ours := strings.HasPrefix(e.UserAgent, "kubectl/") || strings.HasPrefix(e.UserAgent, "Helm/") || strings.HasPrefix(e.UserAgent, "as-is/")
		if about := e.ObjectRef; about != nil && about.Namespace == others && (ours || strings.HasPrefix(e.UserAgent, "ensign/")) {
			Fail(fmt.Sprintf("%s: %q with %v: %s %s reaches the namespace of others\n%s", which, c.args, c.manifest, e.Verb, e.RequestURI, said))
		}
		if !ours {
			continue
		}
		if beyond := c.reaches(&e); beyond != "" {
			Fail(fmt.Sprintf("%s: %q with %v: %s %s reaches %s\n%s", which, c.args, c.manifest, e.Verb, e.RequestURI, beyond, said))
		}
		if e.ObjectRef != nil {
			arrived++
		}
	}
	return arrived
}

// askAsIs sends a request whose path is not read, resolved or quoted before.
func askAsIs(ctx context.Context, kubeconfig, method, path string) string {
	GinkgoHelper()
	text, err := os.ReadFile(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	caller, err := site.NewCaller(text)
	Expect(err).NotTo(HaveOccurred())
	defer caller.HTTP.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, method, caller.Config.Host, strings.NewReader("{}"))
	Expect(err).NotTo(HaveOccurred())
	request.URL.Opaque = "//" + request.URL.Host + path
	request.Header.Set("User-Agent", "as-is/1")
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := caller.HTTP.Do(request)
	if err != nil {
		return err.Error() // A path that is no part of a request.
	}
	said, err := io.ReadAll(response.Body)
	Expect(response.Body.Close()).To(Succeed())
	Expect(err).NotTo(HaveOccurred())
	return string(said)
}

var _ = Describe("a random value in the place of a name", Label("long"), func() {
	It("reaches only the named objects by kubectl and helm", func(ctx context.Context) {
		tryNames(ctx, 1, 2)
	})
})
