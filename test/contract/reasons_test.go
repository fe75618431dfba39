package contract

import (
	"context"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("a CR whose kind has no status subresource", func() {
	It("has one run that is logged as created, and later ones with their triggers", func(ctx context.Context) {
		kind := kindOf("reasons", "Mute")
		mute := harness.Definition(kind)
		mute.Spec.Versions[0].Subresources = nil
		ground.Define(ctx, mute)
		s := ground.Site(ctx, map[string]string{"watches.yaml": "- {group: reasons.example.com, version: v1, kind: Mute, playbook: play.yml}\n", "play.yml": ""})
		s.Script()
		s.Start(ctx, kind.Kind)
		cr := harness.Custom(kind, s.Namespace, "mute", nil)
		s.Create(ctx, cr)
		Eventually(s.Ended(cr)).Should(Equal(1))
		patch(ctx, cr, `{"spec": {"changed": true}}`)
		Eventually(s.Ended(cr)).Should(Equal(2))
		reasons := func() []string {
			text, err := s.Log()
			Expect(err).NotTo(HaveOccurred())
			var found []string
			for _, match := range regexp.MustCompile(`run started.*/mute".*"reason": "([^"]*)"`).FindAllStringSubmatch(text, -1) {
				found = append(found, match[1])
			}
			return found
		}
		Expect(reasons()).To(Equal([]string{"created", "changed"}))
		Expect(s.Stop()).To(Succeed())
		// Times of creation are whole seconds: a CR as old as the manager may be new to it.
		Eventually(time.Now).Should(BeTemporally(">=", cr.GetCreationTimestamp().Add(time.Second)))
		s.Start(ctx, kind.Kind)
		Eventually(s.Ended(cr)).Should(Equal(1))
		Expect(reasons()).To(Equal([]string{"restart"}))
	})
})
