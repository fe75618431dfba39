//go:build long

package faults

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("a manager under load", func() {
	It("reconciles a thousand resources at once, and leaves them alone after a restart", func(ctx context.Context) {
		const resources = 1000
		kind := schema.GroupKind{Group: "load.ensign.io", Kind: "Load"}
		ground.Define(ctx, harness.Definition(kind))
		s := ground.Site(ctx, map[string]string{
			"play.yml": "- hosts: localhost\n",
			"watches.yaml": "- {group: load.ensign.io, version: v1, kind: Load, playbook: play.yml, " +
				"finalizer: {name: load.ensign.io/finalizer, playbook: play.yml}}\n",
		})
		s.Script()
		s.Options.Args = append(s.Options.Args, "--reconcile-period=0s", "--max-concurrent-runs=2", "--max-concurrent-reconciles=2")
		proxy, err := apiproxy.Start(ground.Cluster.Config)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(proxy.Close)
		s.Options.Kubeconfig = filepath.Join(s.Dir, "kubeconfig")
		Expect(proxy.WriteKubeconfig(s.Options.Kubeconfig)).To(Succeed())
		for i := range resources {
			s.Create(ctx, harness.Custom(kind, s.Namespace, fmt.Sprintf("cr-%04d", i), nil))
		}
		s.Start(ctx, kind.Kind)
		began := time.Now()
		Eventually(ctx, func(ctx context.Context) (reported int, err error) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind.WithVersion("v1"))
			err = ground.Client.List(ctx, list, client.InNamespace(s.Namespace))
			for i := range list.Items {
				if len(oracle.Unreported(&list.Items[i])) == 0 {
					reported++
				}
			}
			return reported, err
		}).Should(Equal(resources))
		took := time.Since(began).Round(time.Second / 10)
		events := func(ctx context.Context) (map[string]int, error) {
			list, told := &eventsv1.EventList{}, map[string]int{}
			err := ground.Client.List(ctx, list, client.InNamespace(s.Namespace))
			for i := range list.Items {
				if e := &list.Items[i]; e.Regarding.Kind == kind.Kind {
					Expect(e.Series).To(BeNil())
					told[e.Regarding.Name]++
				}
			}
			return told, err
		}
		Eventually(ctx, events).Should(And(HaveLen(resources), HaveEach(1)))
		AddReportEntry("load", fmt.Sprintf("%d resources with two slots took %s", resources, took), ReportEntryVisibilityAlways)
		runs := func() (int, error) {
			text, err := s.Log()
			return strings.Count(text, "run started"), err
		}
		Expect(runs()).To(Equal(resources))
		writes := map[string]int{}
		for _, r := range proxy.Journal() {
			if r.Applied() && r.Resource == "loads" {
				writes[r.Name]++
			}
		}
		Expect(writes).To(And(HaveLen(resources), HaveEach(3)), "the finalizer, Running, and the result")

		By("restarting the manager")
		Expect(s.Stop()).To(Succeed())
		before := len(proxy.Journal())
		s.Start(ctx, kind.Kind)
		Consistently(func() (applied []apiproxy.Request) {
			for _, r := range proxy.Journal()[before:] {
				if r.Applied() {
					applied = append(applied, r)
				}
			}
			return applied
		}, 15*time.Second).Should(BeEmpty(), "nothing has changed")
		Expect(runs()).To(BeZero())
	})
})

var _ = Describe("a manager with the real Ansible under faults", func() {
	It("converges to the same end under a sample of the plans", func(ctx context.Context) {
		expectAllGood(ctx, filepath.Join(ground.Root, ".venv"), 2, plan.Real())
	})
})

var _ = Describe("a manager under all faults", func() {
	It("converges to the same end under every third plan", func(ctx context.Context) {
		var chosen []plan.Plan
		for i, p := range plan.All() {
			if i%3 == 0 {
				chosen = append(chosen, p)
			}
		}
		expectAllGood(ctx, "", parallel, chosen)
	})
})
