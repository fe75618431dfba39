//go:build node

package node

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	root = "../.."
	// operatorSpace is where `make deploy` puts the operator.
	operatorSpace = "ensign-system"
	deployment    = "ensign-manager"
	// ofManagers selects their pods, and not that of the chart's check.
	ofManagers = "app.kubernetes.io/name=ensign,app.kubernetes.io/component=manager"
)

var (
	config *rest.Config
	// api is an administrator's client.
	api client.WithWatch
	// image is what hack/node/test.sh imported into the node.
	image = os.Getenv("ENSIGN_NODE_IMAGE")
)

func TestNode(t *testing.T) {
	RegisterFailHandler(Fail)
	// Far beyond what it takes, on machines that are busy with something else.
	SetDefaultEventuallyTimeout(4 * time.Minute)
	SetDefaultEventuallyPollingInterval(250 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "node")
}

var _ = BeforeSuite(func() {
	log.SetLogger(GinkgoLogr)
	Expect(image).NotTo(BeEmpty(), "run these tests by `make test-node`, which brings the node and its images up")
	var err error
	config, err = clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	Expect(err).NotTo(HaveOccurred())
	Expect(apiextensionsv1.AddToScheme(scheme.Scheme)).To(Succeed())
	api, err = client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
})

// A failure does not end the story: what follows looks at something else, mostly.
var _ = Describe("an operator on a real node", Ordered, ContinueOnFailure, func() {
	short := Label("short")
	AfterEach(tellOnFailure)

	It("is deployed where Pod Security is restricted", short, deploys)
	It("gives a MySQLCluster a server that is up, on a volume of its own", short, createsACluster)
	It("lets accounts log in with their Secrets' passwords, and nobody else", short, letsAccountsIn)
	It("moves the server to another port, with its data", short, changesThePort)
	It("keeps databases and accounts", short, keepsDatabasesAndAccounts)
	It("grows the server's volume while the server runs", short, growsItsVolume)
	It("moves the server to another version, with its data", short, movesToAnotherVersion)
	It("takes a version back that never ran", takesAVersionBack)
	It("upgrades a database with its data to another release series", upgradesItsData)
	It("keeps the old version with all of its data when the new one fails", keepsTheOldVersion)
	outlivesAccidents()
	It("repairs manual changes", short, repairsWhatOthersChange)
	It("keeps the data when the server's pod is lost", short, outlivesItsServersPod)
	It("dumps databases by a Job, and restores lost ones", short, backsUpAndRestores)
	It("repeats a dump and a restore whose Job was killed", repeatsKilledJobs)
	It("tells each task by kubectl logs, and takes kubectl exec", short, tellsEachTask)
	It("shows one resource's lines by logs, and runs it by reconcile", short, showsOne)
	It("serves metrics to those who may read them", servesMetrics)
	It("runs warm", runsWarm)
	It("works as an arbitrary user", worksAsAnyUser)
	It("goes on with another replica when the leader is killed", outlivesItsLeader)
	It("goes on with another replica when the leader's node is drained", outlivesADrain)
	It("goes on after its container ran out of memory", outlivesItsMemory)
	It("goes on in another pod after its volume was full", outlivesItsVolume)
	It("goes on while the kubelet starts again", outlivesTheKubelet)
	It("runs an operator that was built FROM the base image", runsOthers)
	It("runs an operator that init and create api made, without an edit", runsWhatWasGenerated)
	It("runs an operator of a chart, a role and Go, as its README says", runsTheHybrid)
	It("keeps two sites by the role of examples/visitors", short, runsVisitors(visitors{variant: "ansible", says: true}))
	It("keeps two sites by the chart of examples/visitors", runsVisitors(visitors{variant: "helm"}))
	It("keeps two sites by the Go of examples/visitors", runsVisitors(visitors{variant: "go", says: true}))
	It("runs content in Jobs, whatever happens to their pods", runsInJobs)
	It("installs, upgrades and removes a release in Jobs", keepsAReleaseInJobs)
	It("says what a run in a Job costs", Label("long"), measuresJobs)
	It("takes 50 MiB of output of a run in a Job whose log is rotated", Label("long"), floodsInJobs)
	It("is not taken away while custom resources need it", refusesToGo)
	It("deletes a cluster, its volume and its data", short, deletesACluster)
	It("leaves nothing", short, leavesNothing)
	It("is installed, upgraded and removed by its chart", installsByChart)
})

// tellOnFailure prints what one would look at first.
func tellOnFailure(ctx context.Context) {
	if !CurrentSpecReport().Failed() {
		return
	}
	for _, args := range [][]string{
		{"get", "pods,pvc,mysqlbackups,mysqlclusters,mysqldatabases,mysqlendpoints,mysqlrestores,mysqlusers", "--all-namespaces", "--output=wide"},
		{"get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"},
		{"logs", "--namespace=" + operatorSpace, "--selector=" + ofManagers, "--prefix", "--tail=80"},
	} {
		output, err := command(ctx, "kubectl", args...).CombinedOutput()
		GinkgoWriter.Printf("--- kubectl %v: %v\n%s\n", args, err, output)
	}
}

// managers are the operator's pods that neither have ended nor are on their way out.
func managers(ctx context.Context) (pods []corev1.Pod) {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(operatorSpace), client.MatchingLabels{"app.kubernetes.io/name": "ensign", "app.kubernetes.io/component": "manager"})).To(Succeed())
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
			pods = append(pods, pod)
		}
	}
	return pods
}
