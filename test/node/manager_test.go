//go:build node

package node

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// forward makes a port of a pod one of this machine's, and returns its address.
func forward(ctx context.Context, pod, port string) string {
	GinkgoHelper()
	c := command(ctx, "kubectl", "port-forward", "--namespace="+operatorSpace, pod, ":"+port)
	output, err := c.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // It was killed.
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(line)
	Expect(address).NotTo(BeEmpty(), line)
	return address
}

// scrape asks for the metrics of the operator's one pod with a token, or with none.
func scrape(ctx context.Context, token string) (code int, text string) {
	GinkgoHelper()
	pods := managers(ctx)
	Expect(pods).To(HaveLen(1))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+forward(ctx, "pod/"+pods[0].Name, "8443")+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The certificate is the manager's own, made at its start.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, string(body)
}

// readersToken is a token of an account that may read metrics, which ends with the spec.
func readersToken(ctx context.Context) string {
	GinkgoHelper()
	kubectl(ctx, "create", "serviceaccount", "scraper")
	kubectl(ctx, "create", "clusterrolebinding", "scraper", "--clusterrole=ensign-metrics-reader", "--serviceaccount="+namespace+":scraper")
	DeferCleanup(func(ctx context.Context) {
		kubectl(ctx, "delete", "serviceaccount/scraper", "clusterrolebinding/scraper")
	})
	return strings.TrimSpace(kubectl(ctx, "create", "token", "scraper"))
}

func servesMetrics(ctx context.Context) {
	code, text := scrape(ctx, "")
	Expect(code).To(Equal(http.StatusUnauthorized), text)
	code, text = scrape(ctx, strings.TrimSpace(kubectl(ctx, "create", "token", "default")))
	Expect(code).To(Equal(http.StatusForbidden), text)
	token := readersToken(ctx)
	Eventually(ctx, func() string { // Until the API server knows of the binding.
		_, text = scrape(ctx, token)
		return text
	}, time.Minute, time.Second).Should(MatchRegexp(`(?m)^ansible_operator_reconcile_result\{GVK="myapp.myorg.tld/v1, Kind=MySQLCluster",result="succeeded"\} [1-9]`))
}

// ended reads how many runs have ended in a mode.
func ended(text, mode string) (total int) {
	GinkgoHelper()
	for _, found := range regexp.MustCompile(`(?m)^ansible_operator_runs_total\{.*mode="`+mode+`".*\} (\d+)$`).FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(found[1])
		Expect(err).NotTo(HaveOccurred())
		total += n
	}
	return total
}

func runsWarm(ctx context.Context) {
	token := readersToken(ctx)
	var before string
	Eventually(ctx, func() int {
		_, before = scrape(ctx, token)
		return ended(before, "warm") + ended(before, "cold")
	}, time.Minute, time.Second).Should(BeNumerically(">", 0))
	const runs = 5
	for range runs {
		runAgain(ctx)
	}
	_, after := scrape(ctx, token)
	Expect(ended(after, "warm") - ended(before, "warm")).To(BeNumerically(">=", runs))
	Expect(ended(after, "cold")).To(Equal(ended(before, "cold")))
	warm, cold := ended(after, "warm"), ended(after, "cold")
	AddReportEntry("share of warm runs", fmt.Sprintf("%d of %d", warm, warm+cold))
}

func worksAsAnyUser(ctx context.Context) {
	const uid = "1000720000" // As OpenShift chooses them: any number, group 0.
	patch(ctx, `{"spec":{"template":{"spec":{"securityContext":{"runAsUser":`+uid+`,"runAsGroup":0}}}}}`)
	Expect(kubectl(ctx, "exec", "--namespace="+operatorSpace, "deployment/"+deployment, "--container=manager", "--", "id")).
		To(HavePrefix("uid=" + uid + " gid=0"))
	runAgain(ctx)
	changePort(ctx, 3308)
}
