//go:build long

package disk

import (
	"context"
	"path/filepath"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
)

var _ = Describe("a watch that breaks while no file may be opened", func() {
	It("is back when files may be opened again, with the changes until then", func(ctx context.Context) {
		server, err := apiproxy.Start(ground.Cluster.Config)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Close)
		kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(server.WriteKubeconfig(kubeconfig)).To(Succeed())
		m := startManager(ctx, newDisk(20_000, 20_000), true, "--kubeconfig="+kubeconfig)
		m.create(ctx, "kept", "edited", "deleted")
		Eventually(ctx, m.told("Successful", "")).Should(Equal(3))
		before := m.files()

		By("letting it open no file, and breaking its connections")
		limit := m.limitFiles(3)
		server.Away()()
		Eventually(ctx, m.watchesRefused).Should(BeNumerically(">=", 1), "it cannot connect again")
		edited := m.item("edited")
		Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(edited), edited)).To(Succeed())
		edited.Object["spec"] = map[string]any{"edited": true}
		Expect(ground.Client.Update(ctx, edited)).To(Succeed())
		Expect(ground.Client.Delete(ctx, m.item("deleted"))).To(Succeed())
		m.create(ctx, "created")
		Eventually(ctx, m.watchesRefused).Should(BeNumerically(">=", 6), "for so long that it has looked whether the kind is served, too")
		Expect(m.told("Successful", "")(ctx)).To(Equal(2), "it knows of nothing")

		By("letting it open files again")
		m.limitFiles(limit)
		start := time.Now()
		Eventually(ctx, m.reported("edited")).Should(Equal(edited.GetGeneration()))
		Eventually(ctx, m.told("Successful", "")).Should(Equal(3))
		AddReportEntry("all is reported again after", time.Since(start).Round(time.Second/10).String())
		Eventually(func() []string { return visible(m.RunDir()) }).Should(HaveLen(3), "nothing is kept of what is gone")

		By("changing something with the watch as it is now")
		m.create(ctx, "later")
		Eventually(ctx, m.told("Successful", "")).Should(Equal(4))
		Eventually(m.files).Should(BeNumerically("<=", before+10), "no file stays open")
		Expect(m.ExitCode()).To(Equal(-1), "it is the same process")
	})
})

// watchesRefused counts what the log says of watches that could not be begun for
// want of a descriptor.
func (m manager) watchesRefused() (int, error) {
	log, err := m.Log()
	return len(regexp.MustCompile(`(?m)^.*reflector.*too many open files.*$`).FindAllString(log, -1)), err
}

// reported is the generation that the status of an item is about, once that is a
// success.
func (m manager) reported(name string) func(context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		item := m.item(name)
		if err := ground.Client.Get(ctx, client.ObjectKeyFromObject(item), item); err != nil {
			return 0, err
		}
		observed, _, err := unstructured.NestedInt64(item.Object, "status", "observedGeneration")
		return observed, err
	}
}
