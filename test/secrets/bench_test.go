package secrets

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// bench is a project full of canaries and the manager that serves it.
type bench struct {
	*harness.Manager
	canaries  canaries
	namespace string
	options   harness.Options
	// outside is where runs leave their kubeconfigs for the test.
	outside  string
	watching *watching
}

// newBench starts a manager in a copy of testdata/operator whose canaries are new.
func newBench(ctx context.Context, args ...string) *bench {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "secrets-"}}
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	b := &bench{canaries: canaries{}, namespace: namespace.Name, outside: shortDir()}
	project := shortDir()
	b.fill(project)
	password := b.vault(project)
	b.options = harness.Options{
		Binary: filepath.Join(root, "bin", "manager"), Project: project, Home: shortDir(), Namespace: b.namespace,
		Kubeconfig: b.kubeconfig(ctx),
		Args:       append([]string{"--max-concurrent-reconciles=2", "--ansible-args=--diff --vault-password-file " + password}, args...),
		Env: []string{
			"AWS_SECRET_ACCESS_KEY=" + b.canaries.plant("environment_plain"),
			"ANSIBLE_GALAXY_TOKEN=" + b.canaries.plant("environment_ansible"),
			"K8S_AUTH_API_KEY=" + b.canaries.plant("environment_dropped"),
			"RELATED_IMAGE_TOKEN=" + b.canaries.plant("environment_image"),
		},
	}
	b.start(ctx)
	DeferCleanup(func() { Expect(b.Stop()).To(Succeed()) })
	DeferCleanup(b.tellLog)
	b.watching = watchCommandLines(b.RunDir())
	DeferCleanup(func() { b.watching.end() })
	return b
}

// start starts a manager, which may be the successor of another.
func (b *bench) start(ctx context.Context) {
	GinkgoHelper()
	var err error
	b.Manager, err = harness.Start(b.options)
	Expect(err).NotTo(HaveOccurred())
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	Expect(b.Ready(limited, keeper.Kind)).To(Succeed())
}

// tellLog shows the end of the log of a spec that failed.
func (b *bench) tellLog() {
	if !CurrentSpecReport().Failed() {
		return
	}
	text, err := b.Log()
	Expect(err).NotTo(HaveOccurred())
	AddReportEntry("the end of the log", text[max(0, len(text)-10_000):])
}

// shortDir is a temporary directory with a path that Ansible can put sockets below.
func shortDir() string {
	GinkgoHelper()
	dir, err := os.MkdirTemp("/tmp", "es-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(os.RemoveAll(dir)).To(Succeed()) })
	return dir
}

var placeholder = regexp.MustCompile(`@@(\w+)@@`)

// fill copies the project and puts canaries in their places.
func (b *bench) fill(project string) {
	GinkgoHelper()
	from := filepath.Join("testdata", "operator")
	Expect(filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := placeholder.ReplaceAllStringFunc(string(content), func(found string) string {
			return b.canaries.plant(strings.Trim(found, "@"))
		})
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		to := filepath.Join(project, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, []byte(strings.ReplaceAll(text, "%%outside%%", b.outside)), 0o600)
	})).To(Succeed())
}

// vault encrypts what the project says is encrypted, and gives the path of the
// password's file.
func (b *bench) vault(project string) string {
	GinkgoHelper()
	password := filepath.Join(project, "vault-password")
	Expect(os.WriteFile(password, []byte(b.canaries.plant("vault_password")+"\n"), 0o600)).To(Succeed())
	files, err := filepath.Glob(filepath.Join(project, "roles", "keeper", "vars", "vault*.yml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).To(HaveLen(2))
	command := exec.Command(filepath.Join(root, ".venv", "bin", "ansible-vault"), append([]string{"encrypt", "--vault-password-file", password}, files...)...)
	command.Env = append(os.Environ(), "HOME="+b.outside)
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "ansible-vault: %s", out)
	return password
}

// kubeconfig gives the manager a token of its own, as in a pod.
func (b *bench) kubeconfig(ctx context.Context) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "manager"}}
	Expect(k8s.Create(ctx, account)).To(Succeed())
	Expect(k8s.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.namespace, Name: account.Name}},
	})).To(Succeed())
	token := &authenticationv1.TokenRequest{}
	Expect(k8s.SubResource("token").Create(ctx, account, token)).To(Succeed())
	signature := token.Status.Token[strings.LastIndex(token.Status.Token, ".")+1:]
	b.canaries["manager_token"] = signature
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(shortDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}

// create makes a CR whose run works on the parts and ends as asked.
func (b *bench) create(ctx context.Context, ending string, parts ...string) *unstructured.Unstructured {
	GinkgoHelper()
	list := []any{}
	for _, part := range parts {
		list = append(list, part)
	}
	cr := harness.Custom(keeper, b.namespace, ending, map[string]any{"ending": ending, "parts": list})
	Expect(k8s.Create(ctx, cr)).To(Succeed())
	return cr
}

// ends waits until a run of the CR has ended, gives the reason that is reported,
// and plants the token that the run had.
func (b *bench) ends(ctx context.Context, cr *unstructured.Unstructured) string {
	GinkgoHelper()
	var ended string
	Eventually(ctx, func(ctx context.Context) (string, error) {
		err := k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr)
		ended = ""
		for _, kind := range []string{"Successful", "Failure"} {
			if c := harness.ConditionOf(cr, kind); c.Status == "True" {
				ended = c.Reason
			}
		}
		return ended, err
	}).ShouldNot(BeEmpty(), "%s is at work", cr.GetName())
	b.plantToken(cr.GetName())
	return ended
}

// plantToken makes the token of a run a canary.
func (b *bench) plantToken(name string) {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(filepath.Join(b.outside, name))
	Expect(err).NotTo(HaveOccurred())
	planted := false
	for _, user := range config.AuthInfos {
		b.canaries["run_token_"+name] = user.Token
		planted = len(user.Token) > 2*fragment
	}
	Expect(planted).To(BeTrue(), "the run had no token")
}

// observe adds all that can be seen by now, but for files.
func (b *bench) observe(ctx context.Context, found places) {
	GinkgoHelper()
	text, err := b.Log()
	Expect(err).NotTo(HaveOccurred())
	found["the log"] = []byte(text)
	crs := &unstructured.UnstructuredList{}
	crs.SetGroupVersionKind(keeper.WithVersion("v1"))
	Expect(k8s.List(ctx, crs, client.InNamespace(b.namespace))).To(Succeed())
	for _, cr := range crs.Items {
		found["the CR "+cr.GetName()] = marshal(cr.Object)
	}
	events := &corev1.EventList{}
	Expect(k8s.List(ctx, events, client.InNamespace(b.namespace))).To(Succeed())
	for _, event := range events.Items {
		found["the Event "+event.Name] = marshal(event)
	}
	metrics, err := b.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	found["the metrics"] = []byte(metrics)
	found["command lines"] = []byte(strings.Join(b.watching.seen(), "\n"))
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
	for _, dir := range append(elsewhere, dir) {
		Expect(filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !entry.Type().IsRegular() || path == b.LogFile() {
				return ignoreGone(err)
			}
			content, err := os.ReadFile(path)
			found["the file "+path] = append(content, path...)
			return ignoreGone(err)
		})).To(Succeed())
	}
}

func ignoreGone(err error) error {
	if os.IsNotExist(err) || os.IsPermission(err) {
		return nil
	}
	return err
}

// expectNoLeaks fails with all that is found where nothing may be.
func expectNoLeaks(found places, c canaries) {
	GinkgoHelper()
	leaks := slices.DeleteFunc(found.leaks(c.secret()), func(leak string) bool {
		return strings.HasPrefix(leak, "task_environment in command lines") // That is how Ansible hands it on.
	})
	Expect(leaks).To(BeEmpty(), fmt.Sprintf("%d leaks", len(leaks)))
}
