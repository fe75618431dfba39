//go:build node

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// errand returns a resource of testdata/jobs.yaml.
func errand(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return harness.Custom(schema.GroupKind{Group: "jobs.ensign.test", Kind: kind}, namespace, name, spec)
}

// ofRuns selects the Jobs of runs, and their pods.
const ofRuns = "ensign.io/run=true"

// preparesJobs gives the operator what runs in Jobs need, and the watches of testdata/jobs.yaml with an image
// for them, until the spec's end.
func preparesJobs(ctx context.Context, watches, image string) {
	GinkgoHelper()
	kubectl(ctx, "apply", "-k", "config/overlays/jobs/runs")
	kubectl(ctx, "apply", "-f", "test/node/testdata/jobs.yaml")
	DeferCleanup(func(ctx context.Context) {
		kubectl(ctx, "delete", "-f", "test/node/testdata/jobs.yaml", "--timeout=2m")
		kubectl(ctx, "delete", "-k", "config/overlays/jobs/runs", "--timeout=1m")
	})
	var args []string
	Expect(json.Unmarshal([]byte(kubectl(ctx, "get", "deployment", deployment, "--namespace="+operatorSpace, "--output=jsonpath={.spec.template.spec.containers[0].args}")), &args)).To(Succeed())
	text, err := json.Marshal(append(args, "--watches-file=/etc/jobs/"+watches, "--job-address=ensign-jobs."+operatorSpace+".svc:8445"))
	Expect(err).NotTo(HaveOccurred())
	patch(ctx, fmt.Sprintf(`{"spec":{"template":{"spec":{
		"containers":[{"name":"manager","image":%q,"args":%s,"volumeMounts":[{"name":"jobs","mountPath":"/etc/jobs"}]}],
		"volumes":[{"name":"jobs","configMap":{"name":"jobs-content","items":[
			{"key":%[3]q,"path":%[3]q},{"key":"play.yml","path":"play.yml"},{"key":"say.yml","path":"say.yml"},
			{"key":"Chart.yaml","path":"chart/Chart.yaml"},{"key":"values.yaml","path":"chart/values.yaml"},{"key":"freight.yaml","path":"chart/templates/freight.yaml"}]}}]}}}}`, image, text, watches))
}

// conditionOf reads a condition of a resource.
func conditionOf(cr *unstructured.Unstructured, kind string) func(context.Context) (harness.Condition, error) {
	return func(ctx context.Context) (harness.Condition, error) {
		err := api.Get(ctx, client.ObjectKeyFromObject(cr), cr)
		return harness.ConditionOf(cr, kind), err
	}
}

// runPod waits for the running pod of a run.
func runPod(ctx context.Context) (pod corev1.Pod) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (corev1.PodPhase, error) {
		pods := &corev1.PodList{}
		err := api.List(ctx, pods, client.InNamespace(operatorSpace), client.HasLabels{"ensign.io/run"})
		for _, one := range pods.Items {
			if one.DeletionTimestamp == nil {
				pod = one
			}
		}
		return pod.Status.Phase, err
	}).Should(Equal(corev1.PodRunning))
	return pod
}

func noRunIsLeft(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func() string {
		return kubectl(ctx, "get", "jobs,pods", "--namespace="+operatorSpace, "--selector="+ofRuns, "--output=name")
	}).Should(BeEmpty())
}

// runsInJobs is what the kubelet, the container runtime and the network do to runs in Jobs.
func runsInJobs(ctx context.Context) {
	preparesJobs(ctx, "watches.yaml", image)
	successful := And(HaveField("Status", "True"), HaveField("Reason", "Successful"))
	By("a run that outlives two restarts of the manager")
	long := errand("Errand", "long", map[string]any{"seconds": int64(60)})
	Expect(api.Create(ctx, long)).To(Succeed())
	began := runPod(ctx)
	for range 2 {
		kubectl(ctx, "rollout", "restart", "deployment/"+deployment, "--namespace="+operatorSpace)
		rollOut(ctx)
	}
	Expect(runPod(ctx).UID).To(Equal(began.UID))
	Eventually(ctx, conditionOf(long, "Successful")).Should(successful)
	noRunIsLeft(ctx)

	By("a stranger in the network")
	output, err := command(ctx, "kubectl", "run", "stranger", "--image="+image, "--restart=Never", "--rm", "--attach", "--quiet", "--command", "--", "python3", "-c", `
import ssl, urllib.request, urllib.error
token = open("/var/run/secrets/kubernetes.io/serviceaccount/token").read()
for path in "/v1/claim", "/v1/events", "/v1/api/api/v1/namespaces":
    request = urllib.request.Request("https://ensign-jobs.`+operatorSpace+`.svc:8445" + path, data=b"{}", headers={"Authorization": "Bearer " + token})
    try:
        print(urllib.request.urlopen(request, context=ssl._create_unverified_context()).status)
    except urllib.error.HTTPError as e:
        print(e.code)
`).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	Expect(strings.Fields(string(output))).To(Equal([]string{"401", "401", "401"}))

	By("an image that nobody has")
	puzzle := errand("Puzzle", "puzzle", nil)
	Expect(api.Create(ctx, puzzle)).To(Succeed())
	Eventually(ctx, conditionOf(puzzle, "Running")).Should(HaveField("Message", MatchRegexp("(?s)nobody-has-this")))
	Expect(api.Delete(ctx, puzzle)).To(Succeed())
	noRunIsLeft(ctx)

	By("an eviction by the API, as when a node is drained")
	evicted := errand("Errand", "evicted", map[string]any{"seconds": int64(600)})
	Expect(api.Create(ctx, evicted)).To(Succeed())
	pod := runPod(ctx)
	Expect(api.SubResource("eviction").Create(ctx, &pod, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}})).To(Succeed())
	Eventually(ctx, conditionOf(evicted, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Message", MatchRegexp("(?i)evict"))))
	Expect(api.Delete(ctx, evicted)).To(Succeed())
	noRunIsLeft(ctx)

	By("a run that takes more memory than its pod may")
	greedy := errand("Errand", "greedy", map[string]any{"greedy": true})
	Expect(api.Create(ctx, greedy)).To(Succeed())
	Eventually(ctx, conditionOf(greedy, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Message", MatchRegexp("(?i)memory|OOM|killed"))))
	Expect(api.Delete(ctx, greedy)).To(Succeed())
	noRunIsLeft(ctx)
}

// keepsAReleaseInJobs is the life of a release whose actions execute in Jobs. Where one waits for the pods of the
// chart, it does so until the node gets the label that they ask for. The image is one that was built FROM the base
// image, because this operator's own has no program for charts.
func keepsAReleaseInJobs(ctx context.Context) {
	preparesJobs(ctx, "charts.yaml", "ensign-cafe:node")
	const label = "jobs.ensign.test/word"
	DeferCleanup(func(ctx context.Context) { kubectl(ctx, "label", "nodes", "--all", label+"-") })
	cr := errand("Freight", "freight", map[string]any{"word": "first"})
	Expect(api.Create(ctx, cr)).To(Succeed())
	for _, action := range []struct{ word, reason string }{{"first", "InstallSuccessful"}, {"second", "UpgradeSuccessful"}} {
		By("an action that waits in its pod: " + action.reason)
		Expect(api.Patch(ctx, cr, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"word":"`+action.word+`"}}`)))).To(Succeed())
		pod := runPod(ctx)
		Eventually(ctx, func() string {
			return kubectl(ctx, "get", "configmap", cr.GetName(), "--ignore-not-found", "--output=jsonpath={.data.word}")
		}).Should(Equal(action.word))
		Eventually(ctx, conditionOf(cr, "Running")).Should(HaveField("Message", ContainSubstring(pod.Name)))
		kubectl(ctx, "label", "nodes", "--all", "--overwrite", label+"="+action.word)
		Eventually(ctx, conditionOf(cr, "Deployed")).Should(And(HaveField("Status", "True"), HaveField("Reason", action.reason)))
		Expect(kubectl(ctx, "get", "deployment", cr.GetName(), "--output=jsonpath={.status.updatedReplicas} {.status.availableReplicas}")).To(Equal("1 1"))
		noRunIsLeft(ctx)
	}
	kubectl(ctx, "delete", "freight", cr.GetName(), "--timeout=2m")
	Expect(kubectl(ctx, "get", "configmaps,deployments", "--selector=app=freight", "--output=name")).To(BeEmpty())
	Expect(kubectl(ctx, "get", "secrets", "--selector=owner=helm,name="+cr.GetName(), "--output=name")).To(BeEmpty())
	Eventually(ctx, func() string { return kubectl(ctx, "get", "pods", "--selector=app=freight", "--output=name") }).Should(BeEmpty())
	noRunIsLeft(ctx)
	By("one pod for each of its three actions")
	events := kubectl(ctx, "get", "events", "--namespace="+operatorSpace, "--field-selector=involvedObject.kind=Job,reason=SuccessfulCreate", "--output=custom-columns=JOB:.involvedObject.name")
	Expect(strings.Count(events, string(cr.GetUID()))).To(Equal(3), events)
}

// floodsInJobs is a run with 50 MiB of output, whose container's log is rotated meanwhile: nothing is read
// from there.
func floodsInJobs(ctx context.Context) {
	preparesJobs(ctx, "watches.yaml", image)
	const printed, said = 40_000_000, 300
	cr := errand("Errand", "flooded", map[string]any{"print": int64(printed), "flood": int64(said), "seconds": int64(60)})
	Expect(api.Create(ctx, cr)).To(Succeed())
	pod := runPod(ctx)
	managersLog := func() string {
		return kubectl(ctx, "logs", "--namespace="+operatorSpace, "deployment/"+deployment, "--container=manager", "--tail=-1")
	}
	Eventually(ctx, managersLog).Should(ContainSubstring(`"task": "Say 0"`))
	podsLog := func() int { return len(kubectl(ctx, "logs", "--namespace="+operatorSpace, pod.Name, "--tail=-1")) }
	Eventually(ctx, podsLog).Should(BeNumerically("<", printed/2), "the kubelet rotates it")
	Eventually(ctx, conditionOf(cr, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Result", HaveKeyWithValue("failures", BeNumerically("==", 0)))))
	tasks := map[string]bool{}
	for _, found := range regexp.MustCompile(`"task": "(Say \d+)"`).FindAllStringSubmatch(managersLog(), -1) {
		tasks[found[1]] = true
	}
	Expect(tasks).To(HaveLen(said))
	Expect(api.Delete(ctx, cr)).To(Succeed())
	noRunIsLeft(ctx)
}

// measuresJobs says how much longer a run in a Job takes than a cold one in the manager.
func measuresJobs(ctx context.Context) {
	preparesJobs(ctx, "watches.yaml", image)
	const rounds = 20
	for i := range rounds {
		for _, kind := range []string{"Chore", "Errand"} {
			cr := errand(kind, strings.ToLower(kind)+"-"+strconv.Itoa(i), nil)
			Expect(api.Create(ctx, cr)).To(Succeed())
			Eventually(ctx, conditionOf(cr, "Successful")).Should(HaveField("Status", "True"))
		}
	}
	log := kubectl(ctx, "logs", "--namespace="+operatorSpace, "deployment/"+deployment, "--container=manager", "--tail=-1")
	median := func(kind string) time.Duration {
		GinkgoHelper()
		var seconds []float64
		for _, found := range regexp.MustCompile(`run succeeded.*Kind=`+kind+`".*"seconds": ([\d.]+)`).FindAllStringSubmatch(log, -1) {
			value, err := strconv.ParseFloat(found[1], 64)
			Expect(err).NotTo(HaveOccurred())
			seconds = append(seconds, value)
		}
		Expect(seconds).To(HaveLen(rounds), kind)
		slices.Sort(seconds)
		return time.Duration(seconds[rounds/2] * float64(time.Second))
	}
	local, inJob := median("Chore"), median("Errand")
	AddReportEntry("median of 20 cold runs in the manager", local.String(), ReportEntryVisibilityAlways)
	AddReportEntry("median of 20 runs in Jobs", inJob.String(), ReportEntryVisibilityAlways)
	AddReportEntry("a Job costs (goal: 1.5 s)", (inJob - local).String(), ReportEntryVisibilityAlways)
	kubectl(ctx, "delete", "chores,errands", "--all", "--timeout=2m")
	noRunIsLeft(ctx)
}
