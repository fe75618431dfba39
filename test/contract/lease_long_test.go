//go:build long

package contract

import (
	"bytes"
	"context"
	"net/http"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("a leader", Ordered, func() {
	led := schema.GroupKind{Group: "lease.example.com", Kind: "Led"}
	BeforeAll(func(ctx context.Context) { ground.Define(ctx, harness.Definition(led)) })

	// leads starts a leader with a live run.
	leads := func(ctx context.Context) (*site.Site, *held) {
		GinkgoHelper()
		s := ground.Site(ctx, map[string]string{
			"watches.yaml": "- {group: lease.example.com, version: v1, kind: Led, playbook: hold.yml}\n", "hold.yml": holdPlay,
		})
		s.Options.Env = append(s.Options.Env, "KEEP="+s.Dir)
		s.Options.Args = append(s.Options.Args, "--leader-elect", "--leader-election-id=contract", "--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s")
		s.Start(ctx, "Led")
		cr := harness.Custom(led, s.Namespace, "led", nil)
		s.Create(ctx, cr)
		h := hold(s, cr)
		h.wrote(ctx, http.MethodPost, configMaps(s.Namespace), configMap("while-leading", "1"))
		return s, h
	}
	// rob makes somebody else the leader.
	rob := func(ctx context.Context, namespace string) {
		GinkgoHelper()
		Eventually(ctx, func(ctx context.Context) error {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "contract"}}
			if err := k8s.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
				return err
			}
			lease.Spec.HolderIdentity, lease.Spec.RenewTime = new("somebody"), new(metav1.NewMicroTime(time.Now()))
			return k8s.Update(ctx, lease)
		}).Should(Succeed())
	}

	row("§12 lease lost", "its runs are gone before it exits with 1, and no status is written", func(ctx context.Context) {
		s, h := leads(ctx)
		rob(ctx, s.Namespace)
		Eventually(s.Manager.Ended()).Should(BeClosed())
		Expect(s.Processes()).To(BeEmpty())
		Expect(s.ExitCode()).To(Equal(1))
		Expect(s.Condition(h.cr, "Running")(ctx)).To(And(HaveField("Status", "True"), HaveField("Reason", "Running")))
	})

	row("§12 fence, §8 fence", "a manager that was paused past its lease starts and forwards nothing on waking", func(ctx context.Context) {
		s, h := leads(ctx)
		Expect(syscall.Kill(s.PID(), syscall.SIGSTOP)).To(Succeed())
		lease := &coordinationv1.Lease{}
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: "contract"}, lease)).To(Succeed())
		// Over a connection that is there, to a manager that sleeps.
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.config.Host+configMaps(s.Namespace), bytes.NewBufferString(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "on-waking"}}`))
		Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Content-Type", "application/json")
		forwarded := make(chan bool, 1)
		go func() {
			response, err := h.http.Do(request)
			forwarded <- err == nil && response.Body.Close() == nil && response.StatusCode < 300
		}()
		second := harness.Custom(led, s.Namespace, "second", nil)
		s.Create(ctx, second)
		Consistently(forwarded, site.Calm).ShouldNot(Receive())
		Eventually(func() time.Duration { return time.Since(lease.Spec.RenewTime.Time) }).Should(BeNumerically(">", 4*time.Second), "the lease has run out")
		rob(ctx, s.Namespace)
		Expect(syscall.Kill(s.PID(), syscall.SIGCONT)).To(Succeed())
		Eventually(s.Manager.Ended()).Should(BeClosed())
		Expect(s.Processes()).To(BeEmpty())
		Expect(s.ExitCode()).To(Equal(1))
		Eventually(forwarded).Should(Receive(BeFalse()))
		Expect(s.Runs(second)()).To(BeZero())
		err = k8s.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: "on-waking"}, &corev1.ConfigMap{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		Expect(s.Condition(h.cr, "Running")(ctx)).To(HaveField("Reason", "Running"))
	})
})
