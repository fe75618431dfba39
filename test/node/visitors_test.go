//go:build node

package node

import (
	"context"
	"html"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// visitors is an operator of examples/visitors at work, and what is looked at of its sites.
type visitors struct {
	// variant is ansible, helm or go.
	variant string
	// says tells whether the operator writes ready, url and images into the status. A chart cannot.
	says bool
}

const (
	sites = "visitors-test"
	// hostile is a title for those who take it for markup, for a template, or for a variable.
	hostile = `<script>document.title="hacked"</script> {{ 7*7 }} $(BACKEND_URL) "&'`
	kinds   = "secrets,services,statefulsets,deployments,pods,persistentvolumeclaims"
	// all selects what a site consists of.
	all = "--selector=app.kubernetes.io/name=visitors"
)

// runsVisitors is the story of examples/visitors/README.md with one of the three operators: two sites
// side by side, in a browser.
func runsVisitors(v visitors) func(context.Context) {
	return func(ctx context.Context) {
		v.deploy(ctx)
		kubectl(ctx, "create", "namespace", sites)
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, "delete", "namespace", sites, "--ignore-not-found", "--timeout=3m")
		}) // Before the operator goes: resources need it for their deletion.
		v.apply(ctx, "lobby", `{"title": "The lobby"}`)
		v.apply(ctx, "hall", `{"size": 2, "title": `+strconv.Quote(hostile)+`}`)
		v.isUp(ctx, "lobby", "The lobby", 1)
		v.isUp(ctx, "hall", hostile, 1)
		By("a page that is loaded again")
		v.isUp(ctx, "lobby", "The lobby", 2)
		if GinkgoLabelFilter() != "" {
			return // What follows is not for the few minutes of "short".
		}
		By("changes of the title and the size")
		v.changesOnlyWhatDepends(ctx)
		By("a database that is down")
		v.losesItsDatabase(ctx)
		By("the end")
		kubectl(ctx, "delete", "visitorsapps", "--all", "--namespace="+sites, "--timeout=3m")
		Eventually(ctx, func() string {
			return kubectl(ctx, "get", kinds, "--namespace="+sites, all, "--output=name")
		}).Should(BeEmpty())
	}
}

// deploy brings the operator up by its project's Makefile, until the spec ends.
func (v visitors) deploy(ctx context.Context) {
	GinkgoHelper()
	project := func(ctx context.Context, target string) {
		GinkgoHelper()
		run(ctx, "make", "--directory=examples/visitors/"+v.variant, target, "IMG=visitors-"+v.variant+":node",
			"CONTROLLER_GEN=true", // What it would write stands in the tree.
			"ENSIGN="+filepath.Join(os.Getenv("NODE_WORK"), "state", "ensign"))
	}
	project(ctx, "deploy")
	DeferCleanup(func(ctx context.Context) {
		project(ctx, "undeploy")
		Expect(kubectl(ctx, "get", "namespaces,clusterroles,clusterrolebindings,customresourcedefinitions", "--output=name")).NotTo(MatchRegexp("/visitors-|visitorsapps"))
	})
	name := "visitors-" + v.variant
	kubectl(ctx, "rollout", "status", "deployment/"+name+"-manager", "--namespace="+name+"-system", "--timeout=4m")
}

func (v visitors) apply(ctx context.Context, name, spec string) {
	GinkgoHelper()
	c := command(ctx, "kubectl", "apply", "--namespace="+sites, "--filename=-")
	c.Stdin = strings.NewReader(`{"apiVersion": "example.com/v1", "kind": "VisitorsApp", "metadata": {"name": "` + name + `"}, "spec": ` + spec + `}`)
	Expect(c.CombinedOutput()).To(ContainSubstring("visitorsapp.example.com/" + name))
}

func (v visitors) field(ctx context.Context, object, path string) string {
	GinkgoHelper()
	return kubectl(ctx, "get", object, "--namespace="+sites, "--output=jsonpath={"+path+"}")
}

var (
	shownTitle = regexp.MustCompile(`<title>(.*)</title>`)
	shownTotal = regexp.MustCompile(`<strong id="total">(\d+)</strong>`)
)

// page opens a site in a browser, in the network of the node, and returns what it has then.
func (v visitors) page(ctx context.Context, site string) (document string, err error) {
	GinkgoHelper()
	profile := GinkgoT().TempDir()
	address := v.field(ctx, "service/"+site+"-frontend", ".spec.clusterIP")
	output, err := command(ctx, "nsenter", "--net=/run/netns/"+os.Getenv("NODE_NAME"), "--", "chromium", "--headless", "--no-sandbox",
		"--disable-gpu", "--user-data-dir="+profile, "--dump-dom", "http://"+address+":3000/").Output()
	return string(output), err
}

// isUp expects a page with the title and, by now, so many visits, and a status that says so.
func (v visitors) isUp(ctx context.Context, site, title string, visits int) {
	GinkgoHelper()
	v.isReady(ctx, site)
	document, err := v.page(ctx, site)
	Expect(err).NotTo(HaveOccurred())
	found := shownTitle.FindStringSubmatch(document)
	Expect(found).NotTo(BeNil(), document)
	Expect(html.UnescapeString(found[1])).To(Equal(title))
	total := shownTotal.FindStringSubmatch(document)
	Expect(total).NotTo(BeNil(), document)
	Expect(total[1]).To(Equal(strconv.Itoa(visits)))
}

// isReady waits until the operator says that a site is up as its spec says.
func (v visitors) isReady(ctx context.Context, site string) {
	GinkgoHelper()
	if !v.says {
		Eventually(ctx, func(g Gomega) {
			g.Expect(v.field(ctx, "visitorsapp/"+site, `.status.conditions[?(@.type=="Successful")].status`)).To(Equal("True"))
			g.Expect(v.field(ctx, "visitorsapp/"+site, `.status.observedGeneration`)).To(Equal(v.field(ctx, "visitorsapp/"+site, ".metadata.generation")))
		}).Should(Succeed())
		for _, workload := range []string{"statefulset/" + site + "-mysql", "deployment/" + site + "-backend", "deployment/" + site + "-frontend"} {
			kubectl(ctx, "rollout", "status", workload, "--namespace="+sites, "--timeout=4m")
		}
		for _, field := range []string{"backendImage", "frontendImage"} { // statusFrom shows them.
			Eventually(ctx, func() string { return v.field(ctx, "visitorsapp/"+site, ".status."+field) }).Should(Equal("visitors:1.0"))
		}
		return
	}
	Eventually(ctx, func(g Gomega) {
		g.Expect(v.field(ctx, "visitorsapp/"+site, `.status.ready`)).To(Equal("true"))
		g.Expect(v.field(ctx, "visitorsapp/"+site, `.status.conditions[?(@.type=="Ready")].observedGeneration`)).To(Equal(v.field(ctx, "visitorsapp/"+site, ".metadata.generation")))
	}).Should(Succeed())
	for field, want := range map[string]string{
		"backendImage": "visitors:1.0", "frontendImage": "visitors:1.0", "url": "http://" + site + "-frontend." + sites + ".svc:3000",
	} {
		Expect(v.field(ctx, "visitorsapp/"+site, ".status."+field)).To(Equal(want))
	}
}

// changesOnlyWhatDepends: the title is the frontend's, the size the backend's.
func (v visitors) changesOnlyWhatDepends(ctx context.Context) {
	GinkgoHelper()
	generations := func() map[string]string {
		GinkgoHelper()
		found := map[string]string{}
		for _, object := range []string{"secret/lobby-mysql", "statefulset/lobby-mysql", "deployment/lobby-backend", "deployment/lobby-frontend"} {
			found[object] = v.field(ctx, object, ".metadata.generation") + v.field(ctx, object, ".data")
		}
		return found
	}
	changed := func(spec string) []string {
		GinkgoHelper()
		before := generations()
		kubectl(ctx, "patch", "visitorsapp/lobby", "--namespace="+sites, "--type=merge", "--patch", `{"spec": `+spec+`}`)
		v.isReady(ctx, "lobby")
		after := generations()
		return slices.DeleteFunc(slices.Sorted(maps.Keys(after)), func(object string) bool { return after[object] == before[object] })
	}
	Expect(changed(`{"title": "The new lobby"}`)).To(Equal([]string{"deployment/lobby-frontend"}))
	v.isUp(ctx, "lobby", "The new lobby", 3)
	Expect(changed(`{"size": 2}`)).To(Equal([]string{"deployment/lobby-backend"}))
	Expect(v.field(ctx, "deployment/lobby-backend", ".status.readyReplicas")).To(Equal("2"))
	v.isUp(ctx, "lobby", "The new lobby", 4)
}

// losesItsDatabase: its pod has no node for a while.
func (v visitors) losesItsDatabase(ctx context.Context) {
	GinkgoHelper()
	node := os.Getenv("NODE_NAME")
	kubectl(ctx, "cordon", node)
	DeferCleanup(func(ctx context.Context) { kubectl(ctx, "uncordon", node) })
	kubectl(ctx, "delete", "pod/lobby-mysql-0", "--namespace="+sites, "--timeout=2m")
	document, err := v.page(ctx, "lobby")
	Expect(err).NotTo(HaveOccurred())
	Expect(document).To(And(ContainSubstring("<title>The new lobby</title>"), ContainSubstring("The database does not answer.")))
	if v.says {
		Eventually(ctx, func() string {
			return v.field(ctx, "visitorsapp/lobby", `.status.conditions[?(@.type=="Ready")].message`)
		}).Should(ContainSubstring("The database lobby-mysql is down."))
		Expect(v.field(ctx, "visitorsapp/lobby", ".status.ready")).To(Equal("false"))
		Expect(v.field(ctx, "visitorsapp/hall", ".status.ready")).To(Equal("true"))
	}
	kubectl(ctx, "uncordon", node)
	kubectl(ctx, "rollout", "status", "statefulset/lobby-mysql", "--namespace="+sites, "--timeout=4m")
	v.isUp(ctx, "lobby", "The new lobby", 5)
}
