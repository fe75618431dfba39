//go:build long

package secrets

import (
	"context"
	"fmt"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = DescribeTable("whatever is shown and however a run ends, nothing leaks", func(ctx context.Context, verbosity int, level, format string) {
	b := newBench(ctx, fmt.Sprintf("--ansible-verbosity=%d", verbosity), "--ansible-log-events="+level, "--log-format="+format, "--zap-log-level=5", "--max-backoff=1h")
	reasons := map[string]string{
		"control": "Failed", "nolog": "Failed", "items": "Failed", "api": "Failed", "patch": "Failed", "yaml": "Failed", "template": "Failed", "vault": "Failed",
		"nohandler": "ContentError", "parse": "ContentError", "vaulttasks": "ContentError", "killed": "RunnerCrashed",
	}
	found := places{}
	Expect(b.once(ctx, found, "well", "nolog", "slow", "secretdata", "secretmore")).To(Equal("Successful"))
	for ending, reason := range reasons {
		Expect(b.once(ctx, found, ending)).To(Equal(reason), ending)
	}
	b.observe(ctx, found)
	Expect(b.Stop()).To(Succeed())
	b.files(found, b.Options.Home)
	expectNoLeaks(found, b.canaries)
	Expect(b.canaries.in(found["the log"])).To(ContainElement("shown_failure"))
},
	Entry("verbosity 0, no task logged", 0, "Nothing", "console"),
	Entry("verbosity 1, tasks logged as JSON", 1, "Tasks", "json"),
	Entry("verbosity 3, everything logged as JSON", 3, "Everything", "json"),
	Entry("verbosity 4, tasks logged", 4, "Tasks", "console"),
	Entry("verbosity 4, everything logged for people", 4, "Everything", "pretty"),
)

// once lets a CR have one run, looks at what it shows and leaves, and deletes it,
// so that no further run of it delays the others.
func (b *bench) once(ctx context.Context, found places, ending string, parts ...string) string {
	GinkgoHelper()
	cr := b.create(ctx, ending, parts...)
	reason := b.ends(ctx, cr)
	found["the CR "+ending] = marshal(cr.Object)
	b.files(found, filepath.Join(b.RunDir(), string(cr.GetUID()), "artifacts"))
	Expect(ground.Client.Delete(ctx, cr)).To(Succeed())
	return reason
}

var _ = It("leaves nothing of a run whose manager was killed, once the next one is there", func(ctx context.Context) {
	b := newBench(ctx, "--ansible-verbosity=4")
	cr := b.create(ctx, "sleep", "secretdata")
	Eventually(b.Processes).Should(ContainElement(HaveField("CommandLine", ContainSubstring("sleep 600"))))
	b.plantToken("sleep")
	live := places{}
	b.files(live, b.RunDir())
	there := map[string]bool{}
	for _, content := range live {
		for _, name := range b.canaries.in(content) {
			there[name] = true
		}
	}
	By("finding texts in the directory of a run that must not stay there")
	for _, name := range []string{"environment_plain", "environment_ansible", "watchvar", "run_token_sleep"} {
		Expect(there).To(HaveKey(name))
	}
	Expect(b.Kill()).To(Succeed())
	By("starting the next one, which is not to run it again")
	pause := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"ansible.sdk.operatorframework.io/paused":"true"}}}`))
	Expect(ground.Client.Patch(ctx, cr, pause)).To(Succeed())
	b.Start(ctx, keeper.Kind)
	Eventually(func() []string {
		left := places{}
		b.files(left, b.Options.Home)
		return left.leaks(b.canaries.secret())
	}).Should(BeEmpty())
})
