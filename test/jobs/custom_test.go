package jobs

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/pkg/ensign"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/pods"
)

// errand is the kind of content that a Go program brings.
var errand = schema.GroupKind{Group: group, Kind: "Errand"}

// errands is its engine: each CR has a ConfigMap with its word.
type errands struct{ content.EngineDefaults }

// Prepare implements content.Engine.
func (errands) Prepare(_ context.Context, r content.Request) (content.Work, *content.Outcome) {
	word, _ := r.Spec()["word"].(string)
	if word == "" {
		return errandWork{}, content.Refusal(content.ReasonInvalidSpec, errors.New("spec.word is missing"))
	}
	return errandWork{object: r.Object, word: word}, nil
}

type errandWork struct {
	content.WorkDefaults

	object *unstructured.Unstructured
	word   string
}

// Run implements content.Work.
func (w errandWork) Run(ctx context.Context, job content.Job) content.Result {
	job.Working("write the word")
	result := content.ResultOf(ctx, w.write(ctx, job.Kubeconfig))
	result.Fields = map[string]any{"pid": int64(os.Getpid())}
	return result
}

func (w errandWork) write(ctx context.Context, kubeconfig []byte) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return err
	}
	api, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	made := &corev1.ConfigMap{Data: map[string]string{"word": w.word}}
	made.Namespace, made.Name = w.object.GetNamespace(), w.object.GetName()
	return api.Create(ctx, made)
}

// errandWatch is the watch of the program, of the manager and in pods.
func errandWatch() ensign.Custom {
	return ensign.Custom{Kind: errand.WithVersion("v1"), Engine: errands{}, Executor: "job", Job: &ensign.Job{PodTemplate: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		NodeSelector: map[string]string{corev1.LabelHostname: pods.NodeName}, Tolerations: []corev1.Toleration{{Key: pods.NodeName, Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{Name: "manager", Image: "none", Command: []string{"errands"}}},
	}}}}
}

// runErrand is the program in pods.
func runErrand() error { return ensign.RunAgent(context.Background(), logr.Discard(), errandWatch()) }

var _ = Describe("a kind of content of a Go program, in Jobs", func() {
	It("runs in pods as in the manager: it writes as its resource, reports its fields, and is refused before there is a Job", func(ctx SpecContext) {
		address, err := harness.FreeAddress()
		Expect(err).NotTo(HaveOccurred())
		o := operator{ground.Site(ctx, map[string]string{"watches.yaml": "[]\n"})}
		m, err := ensign.NewManager(ground.Cluster.Config, ctrl.Options{
			Logger: GinkgoLogr, Metrics: metricsserver.Options{BindAddress: "0"}, LeaderElectionNamespace: o.Namespace, LeaderElectionID: "errands",
			Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{o.Namespace: {}}},
		}, ensign.Options{RunDir: filepath.Join(GinkgoT().TempDir(), "runs"), Registerer: prometheus.NewRegistry(), JobBindAddress: address, JobAddress: address})
		Expect(err).NotTo(HaveOccurred())
		Expect(m.AddWatch(errandWatch())).To(Succeed())
		managing, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- m.Start(managing) }()
		DeferCleanup(func() {
			stop()
			Expect(<-ended).To(Succeed())
		})

		cr := harness.Custom(errand, o.Namespace, "one", map[string]any{"word": "first"})
		o.Create(ctx, cr)
		Eventually(ctx, o.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
		made := &corev1.ConfigMap{}
		Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(cr), made)).To(Succeed())
		Expect(made.Data).To(HaveKeyWithValue("word", "first"))
		Expect(made.OwnerReferences).To(ConsistOf(HaveField("UID", cr.GetUID())))
		Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(cr), cr)).To(Succeed())
		Expect(cr.Object["status"]).To(HaveKeyWithValue("pid", And(BeAssignableToTypeOf(int64(0)), Not(BeEquivalentTo(os.Getpid())))))
		Eventually(ctx, o.jobs).Should(BeEmpty())
		Eventually(ctx, o.pods).Should(BeEmpty())

		specify(ctx, cr, `{"word":"second"}`) // A ConfigMap cannot be created twice.
		Eventually(ctx, o.Condition(cr, "Failure")).Should(And(HaveField("Reason", "Failed"), HaveField("Message", ContainSubstring("already exists"))))
		specify(ctx, cr, `{"word":null}`)
		Eventually(ctx, o.Condition(cr, "Failure")).Should(And(HaveField("Reason", "InvalidSpec"), HaveField("Message", "spec.word is missing")))
	})
})
