package leases

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/harness"
)

const leaseName = "leases"

// replica is one manager process with a network, a run directory and an identity
// of its own, as a pod has them.
type replica struct {
	*harness.Manager
	*link

	// proxy is nil if the replica reaches the API server over the link.
	proxy *apiproxy.Proxy
	name  string
}

// start starts a replica of the operator, with further flags.
func (o *operator) start(flags ...string) *replica {
	GinkgoHelper()
	o.started++
	r := &replica{name: fmt.Sprintf("%s-%d", o.Namespace, o.started)}
	server, err := url.Parse(ground.Cluster.Config.Host)
	Expect(err).NotTo(HaveOccurred())
	r.link = newLink(server.Host)
	options := o.Options
	options.Home = filepath.Join(o.Dir, r.name)
	options.Kubeconfig = o.kubeconfig(r)
	if o.faulty {
		r.meet(options.Kubeconfig)
	}
	options.Env = append(options.Env, journalVariable+"="+o.journal.path, replicaVariable+"="+r.name)
	options.Args = append(options.Args, "--leader-elect", "--leader-election-id="+leaseName,
		"--leader-elect-lease-duration="+o.lease.String(), "--leader-elect-renew-deadline=10s")
	options.Args = append(options.Args, flags...)
	r.Manager, err = harness.Start(options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		log, err := r.Log()
		GinkgoWriter.Printf("--- log of %s (%v)\n%s\n", r.name, err, log)
		Expect(r.Kill()).To(Succeed())
	})
	return r
}

// kubeconfig leads over the replica's link, and acts under the replica's name, by
// which the audit log tells it from others.
func (o *operator) kubeconfig(r *replica) string {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(ground.Cluster.Kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	for _, c := range config.Clusters {
		c.Server = "https://" + r.address()
	}
	config.AuthInfos["ensign"].Impersonate = r.name
	config.AuthInfos["ensign"].ImpersonateGroups = []string{"system:masters"}
	path := filepath.Join(o.Dir, r.name+".kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}

// meet puts a fault proxy between the replica and the API server.
func (r *replica) meet(kubeconfig string) {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	r.proxy, err = apiproxy.Start(config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(r.proxy.Close)
	Expect(r.proxy.WriteKubeconfig(kubeconfig)).To(Succeed())
}

// exited waits until the replica has ended by itself, with the code and without
// live runs: 1 after the loss of its lease, 0 after an orderly stop.
func (r *replica) exited(ctx context.Context, code int) {
	GinkgoHelper()
	Eventually(ctx, r.ExitCode).Should(Equal(code), "%s", r.name)
	Expect(harness.ProcessesOf(r.RunDir())).To(BeEmpty(), "processes of runs of %s", r.name)
}

// end stops the replica. It may have ended by the loss of its lease, as on a machine that is too busy
// for a renewal.
func (r *replica) end() {
	GinkgoHelper()
	if err := r.Stop(); r.ExitCode() != 1 {
		Expect(err).NotTo(HaveOccurred())
	}
}

// signal signals the manager, and then it again with all that it has started by then.
func (r *replica) signal(s syscall.Signal) {
	GinkgoHelper()
	Expect(syscall.Kill(r.PID(), s)).To(Succeed())
	for _, p := range harness.Tree(r.PID()) {
		if err := syscall.Kill(p.PID, s); err != syscall.ESRCH {
			Expect(err).NotTo(HaveOccurred())
		}
	}
}
