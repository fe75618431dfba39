package secrets

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// bench is a project full of canaries and the manager that serves it.
type bench struct {
	*site.Site
	canaries canaries
	// outside is where runs leave their kubeconfigs for the test.
	outside string

	mu    sync.Mutex
	lines map[string]bool // command lines of runs' processes, while they live
}

// newBench starts a manager in a copy of testdata/operator whose canaries are new.
func newBench(ctx context.Context, args ...string) *bench {
	GinkgoHelper()
	b := &bench{Site: ground.Site(ctx, nil), canaries: canaries{}, lines: map[string]bool{}}
	b.outside = filepath.Join(b.Dir, "outside")
	Expect(os.Mkdir(b.outside, 0o700)).To(Succeed())
	b.fill()
	// A token of its own, as in a pod.
	b.Limit(ctx, rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}, rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}})
	token := b.token(b.Options.Kubeconfig)
	b.canaries["manager_token"] = token[strings.LastIndex(token, ".")+1:]
	b.Options.Args = append([]string{"--max-concurrent-reconciles=2", "--ansible-args=--diff --vault-password-file " + b.vault()}, args...)
	b.Options.Env = []string{
		"AWS_SECRET_ACCESS_KEY=" + b.canaries.plant("environment_plain"),
		"ANSIBLE_GALAXY_TOKEN=" + b.canaries.plant("environment_ansible"),
		"K8S_AUTH_API_KEY=" + b.canaries.plant("environment_dropped"),
		"RELATED_IMAGE_TOKEN=" + b.canaries.plant("environment_image"),
	}
	b.Start(ctx, keeper.Kind)
	DeferCleanup(harness.Every(interval, b.look))
	return b
}

// places are the directories of runs: the manager's first.
func (b *bench) places() []string {
	if ground.PodsDir != "" {
		return []string{b.RunDir(), ground.PodsDir}
	}
	return []string{b.RunDir()}
}

// look collects command lines.
func (b *bench) look() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, dir := range b.places() {
		processes, _ := harness.ProcessesOf(dir) // What can't be read has ended.
		for _, p := range processes {
			b.lines[p.CommandLine] = true
		}
	}
}

var placeholder = regexp.MustCompile(`@@(\w+)@@`)

// fill copies the project and puts canaries in their places.
func (b *bench) fill() {
	GinkgoHelper()
	from, project := os.DirFS(filepath.Join("testdata", "operator")), map[string]string{}
	Expect(fs.WalkDir(from, ".", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, path)
		text := placeholder.ReplaceAllStringFunc(string(content), func(found string) string {
			return b.canaries.plant(strings.Trim(found, "@"))
		})
		project[path] = strings.ReplaceAll(text, "%%outside%%", b.outside)
		return err
	})).To(Succeed())
	b.Write(project)
}

// vault encrypts what the project says is encrypted, and gives the path of the
// password's file.
func (b *bench) vault() string {
	GinkgoHelper()
	b.Write(map[string]string{"vault-password": b.canaries.plant("vault_password") + "\n"})
	password := filepath.Join(b.Options.Project, "vault-password")
	files, err := filepath.Glob(filepath.Join(b.Options.Project, "roles", "keeper", "vars", "vault*.yml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).To(HaveLen(2))
	command := exec.Command(filepath.Join(ground.Root, ".venv", "bin", "ansible-vault"), append([]string{"encrypt", "--vault-password-file", password}, files...)...)
	command.Env = append(os.Environ(), "HOME="+b.outside)
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "ansible-vault: %s", out)
	return password
}

func (b *bench) token(kubeconfig string) (token string) {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	for _, user := range config.AuthInfos {
		token = user.Token
	}
	Expect(len(token)).To(BeNumerically(">", 2*fragment), "there is no token")
	return token
}

// create makes a CR whose run works on the parts and ends as asked.
func (b *bench) create(ctx context.Context, ending string, parts ...string) *unstructured.Unstructured {
	GinkgoHelper()
	list := []any{}
	for _, part := range parts {
		list = append(list, part)
	}
	cr := harness.Custom(keeper, b.Namespace, ending, map[string]any{"ending": ending, "parts": list})
	b.Create(ctx, cr)
	return cr
}

// ends waits until a run of the CR has ended, gives the reason that is reported,
// and plants the token that the run had.
func (b *bench) ends(ctx context.Context, cr *unstructured.Unstructured) string {
	GinkgoHelper()
	reason := b.Outcome(ctx, cr).Reason
	b.plantToken(cr.GetName())
	return reason
}

// plantToken makes the token of a run a canary.
func (b *bench) plantToken(name string) {
	GinkgoHelper()
	b.canaries["run_token_"+name] = b.token(filepath.Join(b.outside, name))
}

// observe adds all that can be seen by now, but for files.
func (b *bench) observe(ctx context.Context, found places) {
	GinkgoHelper()
	text, err := b.Log()
	Expect(err).NotTo(HaveOccurred())
	found["the log"] = []byte(text)
	crs := &unstructured.UnstructuredList{}
	crs.SetGroupVersionKind(keeper.WithVersion("v1"))
	Expect(ground.Client.List(ctx, crs, client.InNamespace(b.Namespace))).To(Succeed())
	for _, cr := range crs.Items {
		found["the CR "+cr.GetName()] = marshal(cr.Object)
	}
	events := &corev1.EventList{}
	Expect(ground.Client.List(ctx, events, client.InNamespace(b.Namespace))).To(Succeed())
	for _, event := range events.Items {
		found["the Event "+event.Name] = marshal(event)
	}
	metrics, err := b.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	found["the metrics"] = []byte(metrics)
	b.mu.Lock()
	defer b.mu.Unlock()
	found["command lines"] = []byte(strings.Join(slices.Collect(maps.Keys(b.lines)), "\n"))
}

func marshal(value any) []byte {
	GinkgoHelper()
	text, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return text
}

// files adds every file below a directory of the manager's, and what Ansible may
// have left elsewhere.
func (b *bench) files(found places, dir string) {
	GinkgoHelper()
	elsewhere, err := filepath.Glob("/tmp/*ansible*")
	Expect(err).NotTo(HaveOccurred())
	for _, dir := range slices.Concat(elsewhere, b.places()[1:], []string{dir}) {
		names, err := harness.Files(dir)
		Expect(err).NotTo(HaveOccurred())
		for _, name := range names {
			path := filepath.Join(dir, name)
			if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || path == b.LogFile() {
				continue // It is gone, or looked at elsewhere.
			}
			content, err := os.ReadFile(path)
			Expect(err).To(Or(Succeed(), MatchError(os.ErrNotExist), MatchError(os.ErrPermission)), path)
			found["the file "+path] = append(content, path...)
		}
	}
}

// expectNoLeaks fails with all that is found where nothing may be.
func expectNoLeaks(found places, c canaries) {
	GinkgoHelper()
	leaks := slices.DeleteFunc(found.leaks(c.secret()), func(leak string) bool {
		return strings.HasPrefix(leak, "task_environment in command lines") // That is how Ansible hands it on.
	})
	Expect(leaks).To(BeEmpty(), fmt.Sprintf("%d leaks", len(leaks)))
}
