package hybrid

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the example hybrid", Ordered, func() {
	var m *manager

	// field reads one of an object; "" if there is no such object.
	field := func(object, path string) func(context.Context) string {
		return func(ctx context.Context) string {
			GinkgoHelper()
			return kubectl(ctx, "get", object, "--ignore-not-found", "--output=jsonpath={"+path+"}")
		}
	}
	// pods returns the names of those with a label.
	pods := func(label string) func(context.Context) []string {
		return func(ctx context.Context) []string {
			GinkgoHelper()
			names := strings.Fields(kubectl(ctx, "get", "pods", "--selector="+label, "--field-selector=status.phase=Running", "--output=jsonpath={.items[*].metadata.name}"))
			slices.Sort(names)
			return names
		}
	}
	const (
		memcached, backup, client = "memcached/memcached-sample", "memcachedbackup/memcachedbackup-sample", "memcachedclient/memcachedclient-sample"
		ofMemcached, ofBackup     = "app.kubernetes.io/instance=memcached-sample", "cache.my.domain/backup=memcachedbackup-sample"
	)
	// backupHas expects so many pods of the backup, and their names in its status.
	backupHas := func(ctx context.Context, count int) {
		GinkgoHelper()
		Eventually(ctx, func(g Gomega) {
			names := pods(ofBackup)(ctx)
			g.Expect(names).To(HaveLen(count))
			g.Expect(strings.Fields(kubectl(ctx, "get", backup, "--output=jsonpath={.status.nodes[*]}"))).To(Equal(names))
		}).Should(Succeed())
	}
	patch := func(ctx context.Context, object, spec string) {
		GinkgoHelper()
		kubectl(ctx, "patch", object, "--type=merge", "--patch", `{"spec":`+spec+`}`)
	}

	BeforeAll(func(ctx context.Context) {
		m = start(ctx)
		DeferCleanup(func() { m.kill() })
	})

	It("creates the objects of each of the three kinds", func(ctx context.Context) {
		// The API server asks the webhook, which may be yet to come.
		Eventually(ctx, func() error {
			output, err := try(ctx, project, ground.Cluster.Kubectl, "apply", "-k", "config/samples")
			if err != nil {
				GinkgoWriter.Println(output)
			}
			return err
		}).Should(Succeed())
		By("a chart")
		kubectl(ctx, "wait", memcached, "--for=condition=Successful", "--timeout=10m")
		Expect(field("deployment/memcached-sample", ".spec.replicas")(ctx)).To(Equal("3"))
		Expect(field("deployment/memcached-sample", ".metadata.ownerReferences[0].kind")(ctx)).To(Equal("Memcached"))
		Eventually(ctx, pods(ofMemcached)).Should(HaveLen(3))
		By("a reconciler in Go")
		backupHas(ctx, 2)
		Expect(field("deployment/memcachedbackup-sample-backup", ".metadata.ownerReferences[0].kind")(ctx)).To(Equal("MemcachedBackup"))
		By("a role")
		kubectl(ctx, "wait", client, "--for=condition=Successful", "--timeout=10m")
		Expect(field("configmap/memcachedclient-sample", ".data.servers")(ctx)).To(Equal("memcached-sample.default.svc:11211"))
	})

	It("refuses too large values by its webhook, and too small ones by the schema", func(ctx context.Context) {
		for spec, why := range map[string]string{`{"size":6}`: "spec.size is 6, and at most 5 is allowed", `{"size":-1}`: "should be greater than or equal to 0"} {
			output, err := try(ctx, project, ground.Cluster.Kubectl, "patch", backup, "--type=merge", "--patch", `{"spec":`+spec+`}`)
			Expect(err).To(HaveOccurred())
			Expect(output).To(ContainSubstring(why))
		}
		Expect(os.WriteFile(project+"/large.yaml", []byte("apiVersion: cache.my.domain/v1\nkind: MemcachedBackup\nmetadata: {name: large}\nspec: {size: 6}\n"), 0o600)).To(Succeed())
		output, err := try(ctx, project, ground.Cluster.Kubectl, "create", "-f", "large.yaml")
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("at most 5 is allowed"))
	})

	It("follows changes", func(ctx context.Context) {
		patch(ctx, memcached, `{"replicaCount":1}`)
		patch(ctx, backup, `{"size":5}`)
		Eventually(ctx, pods(ofMemcached)).Should(HaveLen(1))
		backupHas(ctx, 5)
	})

	It("goes on where a killed manager was", func(ctx context.Context) {
		patch(ctx, memcached, `{"replicaCount":2}`)
		m.kill()
		patch(ctx, client, `{"memcached":"another"}`)
		kubectl(ctx, "delete", "deployment/memcachedbackup-sample-backup")
		m = start(ctx)
		Eventually(ctx, pods(ofMemcached)).Should(HaveLen(2))
		backupHas(ctx, 5)
		Eventually(ctx, field("configmap/memcachedclient-sample", ".data.servers")).Should(Equal("another.default.svc:11211"))
	})

	It("leaves nothing of deleted resources", func(ctx context.Context) {
		kubectl(ctx, "delete", "-k", "config/samples", "--timeout=10m")
		Eventually(ctx, func(ctx context.Context) []string {
			return strings.Fields(kubectl(ctx, "get", "deployments,replicasets,pods,services,secrets,configmaps", "--output=name", "--field-selector=metadata.name!=kubernetes,metadata.name!=kube-root-ca.crt"))
		}).Should(BeEmpty())
	})

	It("leaves other owners' objects as they are through the life of its resources", respectsOthers)

	It("stops in order, and was refused nothing for want of a right", func() {
		Expect(m.command.Process.Signal(syscall.SIGTERM)).To(Succeed())
		Expect(m.command.Wait()).To(Succeed())
		Expect(refused()).To(BeEmpty())
	})
})

// refused returns the requests of the account that the API server refused because of its rights.
func refused() (all []string) {
	GinkgoHelper()
	file, err := os.Open(auditLog)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	lines, asked := bufio.NewScanner(file), 0
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var event struct {
			RequestURI string `json:"requestURI"`
			Verb       string `json:"verb"`
			User       struct {
				Username string `json:"username"`
			} `json:"user"`
			ResponseStatus struct {
				Code int `json:"code"`
			} `json:"responseStatus"`
		}
		Expect(json.Unmarshal(lines.Bytes(), &event)).To(Succeed())
		if event.User.Username != "system:serviceaccount:"+account.Namespace+":"+account.Name {
			continue
		}
		if asked++; event.ResponseStatus.Code == 403 {
			all = append(all, event.Verb+" "+event.RequestURI)
		}
	}
	Expect(lines.Err()).NotTo(HaveOccurred())
	Expect(asked).To(BeNumerically(">", 0))
	return all
}
